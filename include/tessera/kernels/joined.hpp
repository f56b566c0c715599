// SPDX-License-Identifier: Apache-2.0
// Matrices that lie together in memory, read as one: a product with all of them is then one call.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include <span>

namespace tessera::kernels {

/// Matrices [m_i, n], one below the other: [sum of m_i, n]. A view where they lie so, each dense
/// and directly behind the one before; else a copy. Not differentiable.
at::Tensor joined_rows(std::span<const at::Tensor> matrices);

/// Matrices [m, n_i], one beside the other: [m, sum of n_i]. A view where they are neighbouring
/// columns of one matrix; else a copy. Not differentiable.
at::Tensor joined_columns(std::span<const at::Tensor> matrices);
/// Is that a view?
bool are_neighbours(std::span<const at::Tensor> matrices);

/// The columns of `matrix` [m, n], cut into parts of these widths. Each shows the same memory, but
/// autograd sees no views: for the outputs of an Operation.
std::vector<at::Tensor> columns_of(const at::Tensor& matrix, std::span<const std::int64_t> widths);

/// Copies the columns of `matrix` [m, n] to `parts` [m, n_i], as wide as it together. Rows are
/// dense in all of them; the parts have one type. On a GPU one launch serves 64 parts, and can be
/// captured. Not differentiable.
void copy_columns(const at::Tensor& matrix, std::span<const at::Tensor> parts);

/// Cuts the rows of each tensor into runs of equal size, one for each row of `into` [runs, n]: row
/// r gets run r of all tensors, one after the other, and zeros where a run is short. Rounds to the
/// type of `into`; the tensors have one type. On a GPU one launch serves 64 tensors, and can be
/// captured. Not differentiable.
void copy_runs(const at::Tensor& into, std::span<const at::Tensor> tensors);

/// Is `into` of the type in which values of `tensor` are computed? float64 for float64, float32 for
/// float32 and bfloat16.
bool can_add_runs(const at::Tensor& into, const at::Tensor& tensor);

/// As copy_runs(), added to `into`; can_add_runs() holds for all tensors.
void add_runs(const at::Tensor& into, std::span<const at::Tensor> tensors);

}  // namespace tessera::kernels
