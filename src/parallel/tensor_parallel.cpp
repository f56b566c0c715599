// SPDX-License-Identifier: Apache-2.0
#include "tessera/parallel/tensor_parallel.hpp"

#include "tessera/base/error.hpp"
#include "tessera/kernels/operation.hpp"
#include "tessera/parallel/tensor_buffer.hpp"

namespace tessera::parallel {
namespace {

using at::Tensor;

Tensor all_gathered(const Tensor& piece, comm::Communicator& tp) {
  auto shape = piece.sizes().vec();
  shape[0] *= tp.size();
  Tensor whole = at::empty(shape, piece.options());
  const Tensor contiguous = piece.contiguous();
  tp.all_gather(buffer_of(contiguous), buffer_of(whole)).wait();
  return whole;
}

Tensor reduce_scattered(const Tensor& partial, comm::Communicator& tp) {
  auto shape = partial.sizes().vec();
  shape[0] /= tp.size();
  Tensor piece = at::empty(shape, partial.options());
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

/// `forward_of` of what passes, and `backward_of` of its gradient. The communicator outlives every
/// graph.
class AlongTp final : public kernels::Operation {
 public:
  AlongTp(Move forward_of, Move backward_of, comm::Communicator& tp)
      : forward_of_(forward_of), backward_of_(backward_of), tp_(tp) {}
  std::vector<Tensor> forward(kernels::Kept&, std::span<const Tensor> inputs) override {
    return {forward_of_(inputs[0], tp_)};
  }
  std::vector<Tensor> backward(kernels::Kept&, std::vector<Tensor> gradients) override {
    return {backward_of_(gradients[0], tp_)};
  }

 private:
  Move forward_of_, backward_of_;
  comm::Communicator& tp_;
};

Tensor along(Move forward_of, Move backward_of, const Tensor& input, comm::Communicator& tp) {
  return tp.size() == 1 ? input : kernels::apply(AlongTp(forward_of, backward_of, tp), {input});
}

}  // namespace

Tensor gather_tokens(const Tensor& piece, comm::Communicator& tp) {
  return along(all_gathered, reduce_scattered, piece, tp);
}

Tensor reduce_tokens(const Tensor& partial, comm::Communicator& tp) {
  return along(reduce_scattered, all_gathered, partial, tp);
}

Tensor share_tokens(const Tensor& tokens, comm::Communicator& tp) {
  return along(unchanged, all_reduced, tokens, tp);
}

Tensor sum_tokens(const Tensor& partial, comm::Communicator& tp) {
  return along(all_reduced, unchanged, partial, tp);
}

Tensor own_tokens(const Tensor& tokens, comm::Communicator& tp) {
  TESSERA_EXPECT(tokens.size(0) % tp.size() == 0, "{} tokens on {} ranks", tokens.size(0),
                 tp.size());
  return along(own_piece, all_gathered, tokens, tp);
}

Tensor all_tokens(const Tensor& piece, comm::Communicator& tp) {
  return along(all_gathered, own_piece, piece, tp);
}

Tensor gather_columns(const Tensor& piece, comm::Communicator& tp) {
  return along(all_columns, own_columns, piece, tp);
}

}  // namespace tessera::parallel
