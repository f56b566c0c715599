// SPDX-License-Identifier: Apache-2.0
// Whether weights are where a job says, without reading them.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "tessera/plan/checkpoint_plan.hpp"

namespace tessera::inputs {

/// The end of "FOLDER holds no checkpoint of Tessera": what it holds instead, and `for_weights`
/// where those are Hugging Face weights.
std::string held_instead(const std::filesystem::path& folder, std::string_view for_weights);

/// What to do with Hugging Face weights that are taken for a checkpoint, for held_instead().
std::string_view remedy_for_weights(bool branch);

/// Throws Error(checkpoint) where `from` names no checkpoint and no folder of them, and Error(data)
/// where it names no Hugging Face weights. Reads at most headers.
void require_weights(const plan::InitialState& from);

}  // namespace tessera::inputs
