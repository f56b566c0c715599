// SPDX-License-Identifier: Apache-2.0
// Gated activations: of Llama's feed-forward layer (Shazeer 2020, arXiv:2002.05202), and of
// gpt-oss.
#pragma once

#include "tessera/kernels/tensor.hpp"

namespace tessera::kernels {

/// silu(gate) * up, silu(z) = z / (1 + exp(-z)); differentiable. gate and up [..., H] of one dtype
/// (f64, f32, bf16) and shape; arithmetic in f32 (f64 for f64). Views with a contiguous last dim
/// (halves of one packed tensor) are read where they are. Gradients of halves of a matrix are
/// halves of one, too.
at::Tensor swiglu(const at::Tensor& gate, const at::Tensor& up);

/// The same for (clamp(up, -limit, limit) + 1) g / (1 + exp(-alpha g)), g = min(gate, limit). Where
/// a limit holds, the gradient is 0.
at::Tensor clamped_gate(const at::Tensor& gate, const at::Tensor& up, double alpha, double limit);

}  // namespace tessera::kernels
