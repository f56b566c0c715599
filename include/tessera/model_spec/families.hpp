// SPDX-License-Identifier: Apache-2.0
// Families of models by name and flavor (TorchTitan's), and by Hugging Face's config.json.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tessera/model_spec/decoder_shape.hpp"

namespace tessera::model {

/// "llama3", "qwen3", "mixtral", "deepseek_v3", "gpt_oss".
std::vector<std::string> family_names();
/// Throws Error(usage) that lists the families.
std::vector<std::string> flavors_of(const std::string& family);

/// TorchTitan's dimensions; "debugmodel" and "debugmodel_moe" are small ones. Throws Error(usage)
/// that lists what there is, and names what is nearest to a family or flavor that there is not.
DecoderShape decoder_flavor(const std::string& family, const std::string& flavor);

/// A Hugging Face config.json with model_type llama, qwen3, qwen3_moe, mixtral, deepseek_v3 or
/// gpt_oss, in the spelling of transformers 4 or 5; what the file lacks takes Hugging Face's
/// default. Throws Error(usage) that names the file and the key.
DecoderShape decoder_from_hf_config(const std::filesystem::path& file);

/// The config.json (transformers 4 spelling, which 5 reads too) that describes this shape; `dtype`
/// is the weights' name, "f32" etc.
std::string hf_config_of(const DecoderShape& shape, const std::string& dtype);

/// TorchTitan's feed-forward size: int(8 dim / 3), times the multiplier, rounded up to a multiple.
std::int64_t llama_hidden(std::int64_t dim, std::int64_t multiple_of,
                          std::optional<double> multiplier);

}  // namespace tessera::model
