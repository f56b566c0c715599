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

}  // namespace tessera::kernels
