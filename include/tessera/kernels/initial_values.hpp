// SPDX-License-Identifier: Apache-2.0
// Initial values as a pure function of (seed, name, global element index): the same bits on every
// mesh, compiler and machine.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include <limits>

#include "tessera/base/tensor_slice.hpp"
#include "tessera/kernels/philox.hpp"

namespace tessera::kernels {

/// A normal distribution, cut to [cut_low, cut_high]: values, not multiples of the deviation (as
/// torch.nn.init.trunc_normal_ has it).
struct Normal {
  double mean = 0.0;
  double deviation = 1.0;
  double cut_low = -std::numeric_limits<double>::infinity();
  double cut_high = std::numeric_limits<double>::infinity();
};

/// Fills `out`, the box of the tensor `global_shape` that starts at `offset` and has out's shape
/// (host, contiguous, f64, f32 or bf16). Element with row-major global index i becomes the quantile
/// of the cut normal at (k + 1/2) / 2^52, with k the low 52 bits of the first 64 of
/// philox.block(i); computed in double by +, -, *, / and sqrt alone, then rounded to out's dtype.
/// Throws ContractViolation when the box leaves the tensor, Error(usage) for an empty or non-finite
/// distribution.
void fill_normal(const at::Tensor& out, const Philox& philox, const Shape& global_shape,
                 const Shape& offset, const Normal& normal);

}  // namespace tessera::kernels
