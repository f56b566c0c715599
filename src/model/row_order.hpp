// Rows of tokens in the order of their experts, and back; both differentiable, with gradients in a fixed order.
#pragma once

#include <torch/torch.h>

namespace tessera::model {

/// tokens [T, dim], order [T K] a permutation whose entry i means choice i of token i / K -> [T K, dim].
torch::Tensor rows_of_choices(const torch::Tensor& tokens, const torch::Tensor& order);

/// rows[order], for a permutation.
torch::Tensor reordered(const torch::Tensor& rows, const torch::Tensor& order);

/// The permutation that undoes `order`.
torch::Tensor undoing(const torch::Tensor& order);

/// received [ranks, experts]: rows of each rank for each expert, lying rank by rank -> the order that puts them expert
/// by expert (within one, rank by rank).
torch::Tensor expert_order(const torch::Tensor& received, torch::Device device);

}  // namespace tessera::model
