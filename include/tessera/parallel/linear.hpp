// Products whose weight gradients may be computed later: what pipeline schedules call I and W (zero bubble,
// https://arxiv.org/abs/2401.10241).
#pragma once

#include <torch/torch.h>

#include <functional>
#include <utility>
#include <vector>

#include "tessera/model/operations.hpp"

namespace tessera::parallel {

/// Work that a backward pass may leave for later. An autograd function asks it in its backward() for each gradient of a
/// weight that nothing before this unit's end depends on.
class WeightGradients {
 public:
  using Work = std::vector<std::function<void()>>;

  /// From now on, until take(), work is put off.
  void put_off() { putting_off_ = true; }
  /// What a cell made of its weights is no leaf: its gradient must go on.
  bool puts_off(const torch::Tensor& weight) const { return putting_off_ && weight.is_leaf(); }
  /// Keeps `compute`, which adds a gradient to its leaf and must own what it needs. Only for what puts_off() says.
  void defer(std::function<void()> compute) { work_.push_back(std::move(compute)); }
  /// What was put off, in the order in which it must run.
  Work take() {
    putting_off_ = false;
    return std::exchange(work_, {});
  }

 private:
  bool putting_off_ = false;
  Work work_;
};

/// Adds to a leaf's gradient as autograd does.
void add_gradient(torch::Tensor& leaf, const torch::Tensor& gradient);

/// x [T, in] times the transpose of `weight` [out, in]: [T, out]. Backward computes the input's gradient at once,
/// and that of a leaf when `gradients`, which must outlive the graph, says: the same bits either way.
torch::Tensor linear(const torch::Tensor& x, const torch::Tensor& weight, WeightGradients& gradients);

/// The same for rows that are sorted by expert: kernels::grouped_mm with weight [experts, out, in].
torch::Tensor expert_linear(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& counts,
                            WeightGradients& gradients);

/// `inner` with these products.
class LinearOperations final : public model::Operations {
 public:
  LinearOperations(const model::Operations& inner, WeightGradients& gradients) : inner_(inner), gradients_(gradients) {}

  std::vector<torch::Tensor> products(const torch::Tensor& x, std::span<const model::Weight> weights) const override;
  torch::Tensor expert_product(const torch::Tensor& x, const model::Weight& weight,
                               const torch::Tensor& counts) const override {
    return expert_linear(x, weight.value, counts, gradients_);
  }
  torch::Tensor attention(const model::Attention& input) const override { return inner_.attention(input); }
  void remakable(const torch::Tensor& made, std::function<torch::Tensor()> remake) const override {
    inner_.remakable(made, std::move(remake));
  }

 private:
  const model::Operations& inner_;
  WeightGradients& gradients_;
};

}  // namespace tessera::parallel
