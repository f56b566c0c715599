// SPDX-License-Identifier: Apache-2.0
// Rows of tokens in the order of their experts, and back; both differentiable, with gradients in a
// fixed order.
#pragma once

#include "tessera/kernels/tensor.hpp"

namespace tessera::model {

/// tokens [T, dim], order [T K] a permutation whose entry i means choice i of token i / K, places
/// [T, K] where they go -> [T K, dim].
at::Tensor rows_of_choices(const at::Tensor& tokens, const at::Tensor& order,
                           const at::Tensor& places);

/// rows[order], for a permutation.
at::Tensor reordered(const at::Tensor& rows, const at::Tensor& order);

/// received [ranks, experts]: rows of each rank for each expert, lying rank by rank -> the order
/// that puts `rows`, which these are, expert by expert (within one, rank by rank).
at::Tensor expert_order(const at::Tensor& received, const at::Tensor& rows);

}  // namespace tessera::model
