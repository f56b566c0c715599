// SPDX-License-Identifier: Apache-2.0
// What the name of a flavor says of its attention, as in TorchTitan.
#pragma once

#include <string>

#include "tessera/config/job_config.hpp"

namespace tessera::config {

/// The flavor without the name of an attention: "debugmodel" of "debugmodel_flex_attn".
std::string shape_flavor(const std::string& flavor);

/// Whether TorchTitan's attention of this flavor is block_causal: tokens attend within their own
/// document.
bool masks_documents(const Model& model);

}  // namespace tessera::config
