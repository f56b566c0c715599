// SPDX-License-Identifier: Apache-2.0
// Rows of a mixture: sums of those that a token has in several places, and the same values for all
// rows of a group.
#pragma once

#include <cstdint>

#include "tessera/kernels/tensor.hpp"

namespace tessera::kernels {

/// The permutation that undoes `order` [n], int64. Not differentiable.
at::Tensor undoing(const at::Tensor& order);

/// What has a partner. The place of a choice without a row is -1.
enum class Paired : std::uint8_t {
  choices,  ///< every choice; there may be more rows
  rows,     ///< every row; there may be more choices
  some      ///< there may be more of both
};

/// y[t] = sum over k of weights[t, k] rows[places[t, k]]; differentiable in rows and weights, with
/// sums in a fixed order. rows [R, D] (f64, f32, bf16); places [T, K] int64, of different rows.
/// Rows that no choice has are not read, and their gradient is 0. Choices without a row add
/// nothing, and the gradient of their weights is 0. weights [T, K] of the type that computes (f64
/// for f64, else f32), or undefined: all are 1. Arithmetic in that type. Keeps its inputs for
/// backward, but no rows without weights.
at::Tensor sum_of_choices(const at::Tensor& rows, const at::Tensor& places,
                          const at::Tensor& weights, Paired paired = Paired::choices);

/// y[r] = values[group_of[r]]. values [G, D] (f64, f32, bf16); group_of [R] int64, on their device.
/// Differentiable in values: one product with zeros and ones adds up the gradients of a group, in a
/// fixed order and in at least float32, or TF32 where that is allowed. A number that is not finite
/// makes its column NaN for all groups. On GPUs, index_select would add in any order and in the
/// type of values: a bfloat16 sum of equal rows no longer grows after 256 of them.
at::Tensor rows_of_groups(const at::Tensor& values, const at::Tensor& group_of);

}  // namespace tessera::kernels
