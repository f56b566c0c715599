// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tessera::kernels {

/// Registers shape functions for LibTorch's device "meta"; more calls do nothing.
void install_shape_operators();

}  // namespace tessera::kernels
