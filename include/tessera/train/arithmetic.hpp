// SPDX-License-Identifier: Apache-2.0
// How LibTorch computes on GPUs: the precision of matrix products, and whether it always gives the
// same bits.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include <string>

#include "tessera/mesh/device_mesh.hpp"
#include "tessera/plan/execution_plan.hpp"

namespace tessera::train {

/// Sets LibTorch as training.allow_tf32, training.allow_bf16_reduced_precision_reduction and
/// debug.deterministic say, for this process; gives `device` back. To be called before the first
/// product on it. With debug.deterministic it sets CUBLAS_WORKSPACE_CONFIG, and throws
/// Error(environment) where that has a value with which cuBLAS may sum in any order. On the host it
/// only warns about keys that have no effect there.
at::Device with_arithmetic(const plan::ArithmeticPlan& plan, at::Device device);

/// For communicators of the mesh: with debug.deterministic on a GPU, sums over ranks that do not
/// depend on NCCL (parallel/ordered_sums.hpp). Around them, or alone, comes `outer`, if there is
/// one.
mesh::DeviceMesh::Decorate ordered_sums_of(const plan::ArithmeticPlan& plan, at::Device device,
                                           const mesh::DeviceMesh::Decorate& outer = {});

}  // namespace tessera::train
