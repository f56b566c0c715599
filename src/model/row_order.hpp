// SPDX-License-Identifier: Apache-2.0
// Rows of tokens in the order of their experts, and back; both differentiable, with gradients in a
// fixed order.
#pragma once

#include "tessera/kernels/tensor.hpp"

namespace tessera::model {

/// tokens [T, dim], order [T K] a permutation whose entry i means choice i of token i / K -> [T K,
/// dim].
at::Tensor rows_of_choices(const at::Tensor& tokens, const at::Tensor& order);

/// rows[order], for a permutation.
at::Tensor reordered(const at::Tensor& rows, const at::Tensor& order);

/// choices [T, K, dim], scores [T, K] -> [T, dim], of the choices' type: their sum, weighted and
/// added in the type of the scores. Keeps both for backward.
at::Tensor weighted_sum(const at::Tensor& choices, const at::Tensor& scores);

/// The permutation that undoes `order`.
at::Tensor undoing(const at::Tensor& order);

/// received [ranks, experts]: rows of each rank for each expert, lying rank by rank -> the order
/// that puts `rows`, which these are, expert by expert (within one, rank by rank).
at::Tensor expert_order(const at::Tensor& received, const at::Tensor& rows);

}  // namespace tessera::model
