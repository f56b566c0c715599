#include "tessera/parallel/tensor_parallel.hpp"

#include "tessera/base/error.hpp"
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

Tensor own_piece(const Tensor& tokens, comm::Communicator& tp) {
  const std::int64_t size = tokens.size(0) / tp.size();
  return tokens.narrow(0, tp.rank() * size, size);
}

/// [T, columns / tp] on each rank -> [T, columns], and back to this rank's.
Tensor all_columns(const Tensor& piece, comm::Communicator& tp) {
  const Tensor parts = all_gathered(piece.unsqueeze(0), tp);  // [tp, T, columns / tp]
  return parts.transpose(0, 1).reshape({piece.size(0), -1});
}
Tensor own_columns(const Tensor& whole, comm::Communicator& tp) {
  const std::int64_t columns = whole.size(1) / tp.size();
  return whole.narrow(1, tp.rank() * columns, columns).contiguous();
}

Tensor unchanged(const Tensor& tokens, comm::Communicator&) { return tokens.view_as(tokens); }

}  // namespace

Tensor all_reduced(const Tensor& partial, comm::Communicator& tp) {
  Tensor sum = partial.clone(at::MemoryFormat::Contiguous);
  tp.all_reduce(buffer_of(sum)).wait();
  return sum;
}

namespace {

using Move = Tensor (*)(const Tensor&, comm::Communicator&);

/// `forward` of what passes, and `backward` of its gradient. Communicators outlive every graph, so the graph carries
/// their address.
template <Move forward_of, Move backward_of>
struct AlongTp : torch::autograd::Function<AlongTp<forward_of, backward_of>> {
  static Tensor forward(AutogradContext* context, const Tensor& input, comm::Communicator* tp) {
    context->saved_data["tp"] = reinterpret_cast<std::int64_t>(tp);
    return forward_of(input, *tp);
  }
  static tensor_list backward(AutogradContext* context, tensor_list gradients) {
    auto* tp = reinterpret_cast<comm::Communicator*>(context->saved_data["tp"].toInt());
    return {backward_of(gradients[0], *tp), Tensor()};
  }
};

template <Move forward_of, Move backward_of>
Tensor along(const Tensor& input, comm::Communicator& tp) {
  return tp.size() == 1 ? input : AlongTp<forward_of, backward_of>::apply(input, &tp);
}

}  // namespace

Tensor gather_tokens(const Tensor& piece, comm::Communicator& tp) {
  return along<all_gathered, reduce_scattered>(piece, tp);
}

Tensor reduce_tokens(const Tensor& partial, comm::Communicator& tp) {
  return along<reduce_scattered, all_gathered>(partial, tp);
}

Tensor share_tokens(const Tensor& tokens, comm::Communicator& tp) { return along<unchanged, all_reduced>(tokens, tp); }

Tensor sum_tokens(const Tensor& partial, comm::Communicator& tp) { return along<all_reduced, unchanged>(partial, tp); }

Tensor own_tokens(const Tensor& tokens, comm::Communicator& tp) {
  TESSERA_EXPECT(tokens.size(0) % tp.size() == 0, "{} tokens on {} ranks", tokens.size(0), tp.size());
  return along<own_piece, all_gathered>(tokens, tp);
}

Tensor all_tokens(const Tensor& piece, comm::Communicator& tp) { return along<all_gathered, own_piece>(piece, tp); }

Tensor gather_columns(const Tensor& piece, comm::Communicator& tp) {
  return along<all_columns, own_columns>(piece, tp);
}

}  // namespace tessera::parallel
