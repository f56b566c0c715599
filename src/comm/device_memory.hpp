// SPDX-License-Identifier: Apache-2.0
// The one thing that back ends without a device library of their own do on a device.
#pragma once

#include <cstddef>

namespace tessera::comm {

/// Copies on the current compute stream; nothing when both are the same place. Throws
/// Error(environment) in a build without CUDA.
void copy_on_device(const void* from, void* to, std::size_t bytes);

}  // namespace tessera::comm
