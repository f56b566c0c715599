// SPDX-License-Identifier: Apache-2.0
// Sums of the rows that a token has in several places, as a mixture's experts give them.
#pragma once

#include "tessera/kernels/tensor.hpp"

namespace tessera::kernels {

/// The permutation that undoes `order` [n], int64. Not differentiable.
at::Tensor undoing(const at::Tensor& order);

/// y[t] = sum over k of weights[t, k] rows[places[t, k]]; differentiable in rows and weights, with
/// sums in a fixed order. rows [T K, D] (f64, f32, bf16); places [T, K] int64, a permutation of the
/// rows; weights [T, K] of the type that computes (f64 for f64, else f32), or undefined: all are 1.
/// Arithmetic in that type. Keeps its inputs for backward, but no rows without weights.
at::Tensor sum_of_choices(const at::Tensor& rows, const at::Tensor& places,
                          const at::Tensor& weights);

}  // namespace tessera::kernels
