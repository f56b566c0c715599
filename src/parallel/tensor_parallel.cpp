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

}  // namespace

Tensor all_reduced(const Tensor& partial, comm::Communicator& tp) {
  Tensor sum = partial.clone(at::MemoryFormat::Contiguous);
  tp.all_reduce(buffer_of(sum)).wait();
  return sum;
}

namespace {

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

struct ShareTokens : torch::autograd::Function<ShareTokens> {
  static Tensor forward(AutogradContext* context, const Tensor& tokens, comm::Communicator* tp) {
    remember(context, *tp);
    return tokens.view_as(tokens);
  }
  static tensor_list backward(AutogradContext* context, tensor_list grads) {
    return {all_reduced(grads[0], recall(context)), Tensor()};
  }
};

struct SumTokens : torch::autograd::Function<SumTokens> {
  static Tensor forward(AutogradContext*, const Tensor& partial, comm::Communicator* tp) {
    return all_reduced(partial, *tp);
  }
  static tensor_list backward(AutogradContext*, tensor_list grads) { return {grads[0], Tensor()}; }
};

struct GatherColumns : torch::autograd::Function<GatherColumns> {
  static Tensor forward(AutogradContext* context, const Tensor& piece, comm::Communicator* tp) {
    remember(context, *tp);
    const Tensor parts = all_gathered(piece.unsqueeze(0), *tp);  // [tp, T, columns / tp]
    return parts.transpose(0, 1).reshape({piece.size(0), -1});
  }
  static tensor_list backward(AutogradContext* context, tensor_list grads) {
    const comm::Communicator& tp = recall(context);
    const std::int64_t columns = grads[0].size(1) / tp.size();
    return {grads[0].narrow(1, tp.rank() * columns, columns).contiguous(), Tensor()};
  }
};

}  // namespace

Tensor gather_tokens(const Tensor& piece, comm::Communicator& tp) {
  return tp.size() == 1 ? piece : GatherTokens::apply(piece, &tp);
}

Tensor reduce_tokens(const Tensor& partial, comm::Communicator& tp) {
  return tp.size() == 1 ? partial : ReduceTokens::apply(partial, &tp);
}

Tensor share_tokens(const Tensor& tokens, comm::Communicator& tp) {
  return tp.size() == 1 ? tokens : ShareTokens::apply(tokens, &tp);
}

Tensor sum_tokens(const Tensor& partial, comm::Communicator& tp) {
  return tp.size() == 1 ? partial : SumTokens::apply(partial, &tp);
}

Tensor gather_columns(const Tensor& piece, comm::Communicator& tp) {
  return tp.size() == 1 ? piece : GatherColumns::apply(piece, &tp);
}

}  // namespace tessera::parallel
