#include "tessera/kernels/cross_entropy.hpp"
#include "tessera/parallel/tensor_buffer.hpp"
#include "tessera/parallel/tensor_parallel.hpp"

namespace tessera::parallel {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

struct Loss : torch::autograd::Function<Loss> {
  static Tensor forward(AutogradContext* context, const Tensor& logits, const Tensor& labels, std::int64_t vocab_begin,
                        double scale, comm::Communicator* tp, Tensor* token_losses) {
    const Tensor row_max = kernels::row_max(logits);
    tp->all_reduce(buffer_of(row_max), comm::Op::max).wait();
    const auto [sum_exp, target] = kernels::sum_exp_and_target(logits, row_max, labels, vocab_begin);
    const Tensor sums = torch::stack({sum_exp, target});  // one exchange for both
    tp->all_reduce(buffer_of(sums)).wait();
    const Tensor losses = (sums[0].log() - sums[1]).masked_fill_(labels.eq(-100), 0);
    context->save_for_backward({logits, row_max, sums[0].contiguous(), labels});
    context->saved_data["vocab_begin"] = vocab_begin;
    context->saved_data["scale"] = scale;
    if (token_losses) *token_losses = losses;
    return losses.sum(torch::kFloat64).mul(scale).to(losses.scalar_type());
  }

  /// The gradient takes the logits' memory: they are used by nobody else, and are the largest tensor of a step.
  static tensor_list backward(AutogradContext* context, tensor_list grads) {
    const auto saved = context->get_saved_variables();
    const double scale = context->saved_data["scale"].toDouble() * grads[0].item<double>();
    Tensor gradient = saved[0].detach();
    kernels::softmax_gradient_(gradient, saved[1], saved[2], saved[3], context->saved_data["vocab_begin"].toInt(), scale);
    return {gradient, Tensor(), Tensor(), Tensor(), Tensor(), Tensor()};
  }
};

}  // namespace

Tensor vocabulary_parallel_loss(const Tensor& logits, const Tensor& labels, std::int64_t vocab_begin, double scale,
                                comm::Communicator& tp, Tensor* token_losses) {
  return Loss::apply(logits, labels, vocab_begin, scale, &tp, token_losses);
}

}  // namespace tessera::parallel
