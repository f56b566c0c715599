// SPDX-License-Identifier: Apache-2.0
#include "row_losses.hpp"
#include "tessera/kernels/cross_entropy.hpp"
#include "tessera/kernels/operation.hpp"
#include "tessera/parallel/tensor_buffer.hpp"
#include "tessera/parallel/tensor_parallel.hpp"

namespace tessera::parallel {

using at::Tensor;
using kernels::Kept;

RowLosses row_losses(const Tensor& logits, const Tensor& labels, std::int64_t vocab_begin,
                     comm::Communicator& tp) {
  const Tensor row_max = kernels::row_max(logits);
  tp.all_reduce(buffer_of(row_max), comm::Op::max).wait();
  const auto [sum_exp, target] = kernels::sum_exp_and_target(logits, row_max, labels, vocab_begin);
  const Tensor sums = at::stack({sum_exp, target});  // one exchange for both
  tp.all_reduce(buffer_of(sums)).wait();
  const Tensor losses =
      (sums[0].log() - sums[1]).masked_fill_(labels.eq(kernels::ignored_label), 0);
  return {losses, row_max, sums[0].contiguous()};
}

Tensor scaled_sum(const Tensor& losses, double scale) {
  return losses.sum(at::kDouble).mul(scale).to(losses.scalar_type());
}

bool is_one(const Tensor& gradient, const Tensor& one) {
  return gradient.is_alias_of(one) || (gradient.is_cpu() && gradient.item<double>() == 1);
}

namespace {

/// Of logits and labels. The communicator outlives every graph.
class Loss final : public kernels::Operation {
 public:
  Loss(std::int64_t vocab_begin, double scale, comm::Communicator& tp, TokenLoss& made)
      : vocab_begin_(vocab_begin), scale_(scale), tp_(tp), made_(made) {}

  std::vector<Tensor> forward(Kept& kept, std::span<const Tensor> inputs) override {
    const Tensor &logits = inputs[0], &labels = inputs[1];
    const RowLosses rows = row_losses(logits, labels, vocab_begin_, tp_);
    kept.save({logits, rows.row_max, rows.sum_exp, labels});
    made_.token_losses = rows.losses;
    const Tensor sum = scaled_sum(rows.losses, scale_);
    made_.one = one_ = at::ones_like(sum);
    return {sum};
  }

  /// The gradient takes the logits' memory: they are used by nobody else, and are the largest
  /// tensor of a step.
  std::vector<Tensor> backward(Kept& kept, std::vector<Tensor> gradients) override {
    const auto saved = kept.saved();
    const double scale = is_one(gradients[0], one_) ? scale_ : scale_ * gradients[0].item<double>();
    Tensor gradient = saved[0].detach();
    kernels::softmax_gradient_(gradient, saved[1], saved[2], saved[3], vocab_begin_, scale);
    return {gradient, {}};
  }

 private:
  std::int64_t vocab_begin_;
  double scale_;
  comm::Communicator& tp_;
  TokenLoss& made_;  ///< written in forward only, which apply() runs
  Tensor one_;
};

}  // namespace

TokenLoss vocabulary_parallel_loss(const Tensor& logits, const Tensor& labels,
                                   std::int64_t vocab_begin, double scale, comm::Communicator& tp) {
  TokenLoss result;
  result.loss = kernels::apply(Loss(vocab_begin, scale, tp, result), {logits, labels});
  return result;
}

}  // namespace tessera::parallel
