// SPDX-License-Identifier: Apache-2.0
// Families of models by name and flavor (TorchTitan's).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tessera/model_spec/decoder_shape.hpp"

namespace tessera::model {

/// "llama3", "qwen3" and so on: what model.name may be.
std::vector<std::string> family_names();
/// Throws Error(usage) that lists the families.
std::vector<std::string> flavors_of(const std::string& family);

/// TorchTitan's dimensions; "debugmodel" and "debugmodel_moe" are small ones. Throws Error(usage)
/// that lists what there is, and names what is nearest to a family or flavor that there is not.
DecoderShape decoder_flavor(const std::string& family, const std::string& flavor);

/// TorchTitan's feed-forward size: int(8 dim / 3), times the multiplier, rounded up to a multiple.
std::int64_t llama_hidden(std::int64_t dim, std::int64_t multiple_of,
                          std::optional<double> multiplier);

}  // namespace tessera::model
