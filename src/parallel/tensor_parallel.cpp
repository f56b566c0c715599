#include "tessera/parallel/tensor_parallel.hpp"

#include "tessera/parallel/tensor_buffer.hpp"

namespace tessera::parallel {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

Tensor all_gathered(const Tensor& piece, comm::Communicator& tp) {
  auto shape = piece.sizes().vec();
  shape[0] *= tp.size();
  Tensor whole = torch::empty(shape, piece.options());
  const Tensor contiguous = piece.contiguous();
  tp.all_gather(buffer_of(contiguous), buffer_of(whole)).wait();
  return whole;
}

Tensor reduce_scattered(const Tensor& partial, comm::Communicator& tp) {
  auto shape = partial.sizes().vec();
  shape[0] /= tp.size();
  Tensor piece = torch::empty(shape, partial.options());
  const Tensor contiguous = partial.contiguous();
  tp.reduce_scatter(buffer_of(contiguous), buffer_of(piece)).wait();
  return piece;
}

/// Communicators outlive every graph, so the graph carries their address.
void remember(AutogradContext* context, comm::Communicator& tp) {
  context->saved_data["tp"] = reinterpret_cast<std::int64_t>(&tp);
}
comm::Communicator& recall(AutogradContext* context) {
  return *reinterpret_cast<comm::Communicator*>(context->saved_data["tp"].toInt());
}

struct GatherTokens : torch::autograd::Function<GatherTokens> {
  static Tensor forward(AutogradContext* context, const Tensor& piece, comm::Communicator* tp) {
    remember(context, *tp);
    return all_gathered(piece, *tp);
  }
  static tensor_list backward(AutogradContext* context, tensor_list grads) {
    return {reduce_scattered(grads[0], recall(context)), Tensor()};
  }
};

struct ReduceTokens : torch::autograd::Function<ReduceTokens> {
  static Tensor forward(AutogradContext* context, const Tensor& partial, comm::Communicator* tp) {
    remember(context, *tp);
    return reduce_scattered(partial, *tp);
  }
  static tensor_list backward(AutogradContext* context, tensor_list grads) {
    return {all_gathered(grads[0], recall(context)), Tensor()};
  }
};

}  // namespace

Tensor gather_tokens(const Tensor& piece, comm::Communicator& tp) {
  return tp.size() == 1 ? piece : GatherTokens::apply(piece, &tp);
}

Tensor reduce_tokens(const Tensor& partial, comm::Communicator& tp) {
  return tp.size() == 1 ? partial : ReduceTokens::apply(partial, &tp);
}

}  // namespace tessera::parallel
