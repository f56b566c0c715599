// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "tessera/comm/hooks.hpp"

namespace tessera::train {

/// Tells NVIDIA's tools what a rank does: a range for each pass of a unit, on the thread that
/// computes, and one for each call of a communicator. Null in a build without CUDA.
std::shared_ptr<comm::Hook> make_nvtx_ranges();

}  // namespace tessera::train
