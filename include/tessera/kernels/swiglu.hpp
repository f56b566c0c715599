// SPDX-License-Identifier: Apache-2.0
// Gated activation of Llama's feed-forward layer (Shazeer 2020, arXiv:2002.05202).
#pragma once

#include "tessera/kernels/tensor.hpp"

namespace tessera::kernels {

/// silu(gate) * up, silu(z) = z / (1 + exp(-z)); differentiable. gate and up [..., H] of one dtype
/// (f64, f32, bf16) and shape; arithmetic in f32 (f64 for f64). Views with a contiguous last dim
/// (halves of one packed tensor) are read where they are. Gradients of halves of a matrix are
/// halves of one, too.
at::Tensor swiglu(const at::Tensor& gate, const at::Tensor& up);

}  // namespace tessera::kernels
