// SPDX-License-Identifier: Apache-2.0
#include "tessera/kernels/cross_entropy.hpp"
#include "tessera/kernels/operation.hpp"
#include "tessera/parallel/tensor_buffer.hpp"
#include "tessera/parallel/tensor_parallel.hpp"

namespace tessera::parallel {
namespace {

using at::Tensor;
using kernels::Kept;

/// Of logits and labels. The communicator outlives every graph.
class Loss final : public kernels::Operation {
 public:
  Loss(std::int64_t vocab_begin, double scale, comm::Communicator& tp, Tensor& token_losses)
      : vocab_begin_(vocab_begin), scale_(scale), tp_(tp), token_losses_(token_losses) {}

  std::vector<Tensor> forward(Kept& kept, std::span<const Tensor> inputs) override {
    const Tensor &logits = inputs[0], &labels = inputs[1];
    const Tensor row_max = kernels::row_max(logits);
    tp_.all_reduce(buffer_of(row_max), comm::Op::max).wait();
    const auto [sum_exp, target] =
        kernels::sum_exp_and_target(logits, row_max, labels, vocab_begin_);
    const Tensor sums = at::stack({sum_exp, target});  // one exchange for both
    tp_.all_reduce(buffer_of(sums)).wait();
    const Tensor losses = (sums[0].log() - sums[1]).masked_fill_(labels.eq(-100), 0);
    kept.save({logits, row_max, sums[0].contiguous(), labels});
    token_losses_ = losses;
    return {losses.sum(at::kDouble).mul(scale_).to(losses.scalar_type())};
  }

  /// The gradient takes the logits' memory: they are used by nobody else, and are the largest
  /// tensor of a step.
  std::vector<Tensor> backward(Kept& kept, std::vector<Tensor> gradients) override {
    const auto saved = kept.saved();
    const double scale = scale_ * gradients[0].item<double>();
    Tensor gradient = saved[0].detach();
    kernels::softmax_gradient_(gradient, saved[1], saved[2], saved[3], vocab_begin_, scale);
    return {gradient, {}};
  }

 private:
  std::int64_t vocab_begin_;
  double scale_;
  comm::Communicator& tp_;
  Tensor& token_losses_;  ///< written in forward only, which apply() runs
};

}  // namespace

TokenLoss vocabulary_parallel_loss(const Tensor& logits, const Tensor& labels,
                                   std::int64_t vocab_begin, double scale, comm::Communicator& tp) {
  TokenLoss result;
  result.loss = kernels::apply(Loss(vocab_begin, scale, tp, result.token_losses), {logits, labels});
  return result;
}

}  // namespace tessera::parallel
