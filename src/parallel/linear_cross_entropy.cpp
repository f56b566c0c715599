// SPDX-License-Identifier: Apache-2.0
#include "tessera/parallel/linear_cross_entropy.hpp"

#include <algorithm>

#include "row_losses.hpp"
#include "tessera/base/error.hpp"
#include "tessera/kernels/accumulation_type.hpp"
#include "tessera/kernels/cross_entropy.hpp"
#include "tessera/kernels/matrix_product.hpp"
#include "tessera/kernels/operation.hpp"

namespace tessera::parallel {
namespace {

using at::Tensor;
using kernels::Kept;

/// The gradients of x and weight that chunks add up. Undefined where nobody wants them.
struct Sums {
  Tensor of_x, of_weight;

  Sums(const Tensor& x, const Tensor& weight, bool wants_x, bool wants_weight) {
    if (wants_x) of_x = at::empty_like(x, at::MemoryFormat::Contiguous);
    if (wants_weight)
      of_weight =
          at::empty(weight.sizes(), weight.options().dtype(kernels::accumulation_type(weight)));
    if (wants_weight && x.size(0) == 0) of_weight.zero_();
  }
  bool wanted() const { return of_x.defined() || of_weight.defined(); }
  /// `gradient`: of the logits of the tokens from `begin`.
  void add(const Tensor& gradient, const Tensor& x, const Tensor& weight, std::int64_t begin) {
    if (of_x.defined()) kernels::mm_out(of_x.narrow(0, begin, x.size(0)), gradient, weight);
    if (!of_weight.defined()) return;
    (begin == 0 ? kernels::mm_out : kernels::addmm_)(of_weight, gradient.t(), x);
  }
};

/// Of x, weight and labels.
class LinearCrossEntropy final : public kernels::Operation {
 public:
  LinearCrossEntropy(const LinearLoss& how, bool wants_x, bool wants_weight, TokenLoss& made)
      : how_(how), wants_x_(wants_x), wants_weight_(wants_weight), made_(made) {}

  std::vector<Tensor> forward(Kept& kept, std::span<const Tensor> inputs) override {
    const Tensor &x = inputs[0], &weight = inputs[1], &labels = inputs[2];
    const std::int64_t tokens = x.size(0), most = std::min(how_.chunk_tokens, tokens);
    Sums sums(x, weight, wants_x_, wants_weight_);
    const Tensor losses = at::zeros({tokens}, x.options().dtype(kernels::accumulation_type(x)));
    const Tensor logits = at::empty({most, weight.size(0)}, x.options());
    for (std::int64_t begin = 0; begin < tokens; begin += most) {
      const std::int64_t size = std::min(most, tokens - begin);
      const Tensor part = x.narrow(0, begin, size), ids = labels.narrow(0, begin, size);
      Tensor chunk = logits.narrow(0, 0, size);
      kernels::mm_out(chunk, part, weight.t());
      const RowLosses rows = row_losses(chunk, ids, how_.vocab_begin, how_.tp);
      losses.narrow(0, begin, size).copy_(rows.losses);
      if (!sums.wanted()) continue;
      kernels::softmax_gradient_(chunk, rows.row_max, rows.sum_exp, ids, how_.vocab_begin,
                                 how_.scale);
      sums.add(chunk, part, weight, begin);
    }
    if (sums.wanted())
      kept.save({sums.of_x, wants_weight_ ? sums.of_weight.to(weight.scalar_type()) : Tensor()});
    made_.token_losses = losses;
    const Tensor sum = scaled_sum(losses, how_.scale);
    made_.one = one_ = at::ones_like(sum);
    return {sum};
  }

  std::vector<Tensor> backward(Kept& kept, std::vector<Tensor> gradients) override {
    std::vector<Tensor> result = kept.saved();
    for (const Tensor& gradient : result)
      if (gradient.defined() && !is_one(gradients[0], one_)) gradient.mul_(gradients[0]);
    result.emplace_back();
    return result;
  }

 private:
  LinearLoss how_;
  bool wants_x_, wants_weight_;
  TokenLoss& made_;  ///< written in forward only, which apply() runs
  Tensor one_;
};

}  // namespace

TokenLoss linear_cross_entropy(const Tensor& x, const Tensor& weight, const Tensor& labels,
                               const LinearLoss& how) {
  TESSERA_EXPECT(x.dim() == 2 && weight.dim() == 2 && x.size(1) == weight.size(1) &&
                     labels.dim() == 1 && labels.size(0) == x.size(0) && how.chunk_tokens > 0,
                 "hidden states, weight and labels of a linear cross-entropy do not fit");
  const bool grad = at::GradMode::is_enabled();
  TokenLoss result;
  result.loss = kernels::apply(
      LinearCrossEntropy(how, grad && x.requires_grad(), grad && weight.requires_grad(), result),
      {x, weight, labels});
  return result;
}

}  // namespace tessera::parallel
