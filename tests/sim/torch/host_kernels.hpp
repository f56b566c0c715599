// SPDX-License-Identifier: Apache-2.0
// TESSERA_SIM_KERNELS=host: kernels that are not those of a GPU.
#pragma once

namespace tessera::sim {

/// From now on src's own kernels on device tensors are the host's, as tasks on the device's bytes:
/// all results then have the host's bits. The .cu files do not run, which makes a model's step
/// several times faster.
void use_host_kernels();
/// LibTorch's scaled_dot_product_attention becomes the host's attention, too.
void use_host_attention();

}  // namespace tessera::sim
