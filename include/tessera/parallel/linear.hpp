// SPDX-License-Identifier: Apache-2.0
// Products whose weight gradients may be computed later: what pipeline schedules call I and W (zero
// bubble, https://arxiv.org/abs/2401.10241).
#pragma once

#include "tessera/kernels/tensor.hpp"

#include <functional>
#include <utility>
#include <vector>

#include "tessera/model/operations.hpp"

namespace tessera::parallel {

/// Work that a backward pass may leave for later. An autograd function asks it in its backward()
/// for each gradient of a weight that nothing before this unit's end depends on.
class WeightGradients {
 public:
  using Work = std::vector<std::function<void()>>;

  /// From now on, until take(), work is put off.
  void put_off() { putting_off_ = true; }
  /// What a cell computed from its weights is not a leaf: its gradient must propagate.
  bool puts_off(const at::Tensor& weight) const { return putting_off_ && weight.is_leaf(); }
  /// Keeps `compute`, which adds a gradient to its leaf and must own what it needs. Only for what
  /// puts_off() says.
  void defer(std::function<void()> compute) { work_.push_back(std::move(compute)); }
  /// What autograd is to add to `weight`'s gradient: compute(), or nothing yet if it is to come
  /// later.
  template <class Compute>
  at::Tensor now_or_later(const at::Tensor& weight, Compute compute);
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
void add_gradient(at::Tensor& leaf, const at::Tensor& gradient);

template <class Compute>
at::Tensor WeightGradients::now_or_later(const at::Tensor& weight, Compute compute) {
  if (!puts_off(weight)) return compute();
  defer([compute, leaf = weight]() mutable { add_gradient(leaf, compute()); });
  return {};
}

/// x [T, in] times the transpose of `weight` [out, in]: [T, out]. Backward computes the input's
/// gradient at once, and that of a leaf when `gradients`, which must outlive the graph, says: the
/// same bits either way.
at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, WeightGradients& gradients);

/// The same for each of these weights [out_i, in], in one product. The results are neighbouring
/// columns of one matrix; gradients that are such are read where they are.
std::vector<at::Tensor> linears(const at::Tensor& x, std::vector<at::Tensor> weights,
                                WeightGradients& gradients);

/// The same for rows that are sorted by expert: kernels::grouped_mm with weight [experts, out, in].
at::Tensor expert_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& groups,
                         WeightGradients& gradients);

class RoundedWeights;

/// `inner` with these products, those of `rounded` rounded.
class LinearOperations final : public model::Operations {
 public:
  LinearOperations(const model::Operations& inner, const RoundedWeights& rounded,
                   WeightGradients& gradients)
      : inner_(inner), rounded_(rounded), gradients_(gradients) {}

  std::vector<at::Tensor> products(const at::Tensor& x,
                                   std::span<const model::Weight> weights) const override;
  std::function<at::Tensor()> product_again(const at::Tensor& x,
                                            const model::Weight& weight) const override;
  at::Tensor expert_product(const at::Tensor& x, const model::Weight& weight,
                            const at::Tensor& groups) const override;
  std::function<at::Tensor()> expert_product_again(const at::Tensor& x, const model::Weight& weight,
                                                   const at::Tensor& groups) const override;
  at::Tensor attention(const model::Attention& input) const override {
    return inner_.attention(input);
  }
  void remakable(const at::Tensor& made, std::function<at::Tensor()> remake) const override {
    inner_.remakable(made, std::move(remake));
  }

 private:
  const model::Operations& inner_;
  const RoundedWeights& rounded_;
  WeightGradients& gradients_;
};

}  // namespace tessera::parallel
