// SPDX-License-Identifier: Apache-2.0
#include "tessera/parallel/chunked_products.hpp"

#include "tessera/base/error.hpp"
#include "tessera/base/shard.hpp"
#include "tessera/kernels/matrix_product.hpp"
#include "tessera/kernels/operation.hpp"
#include "tessera/parallel/linear.hpp"
#include "tessera/parallel/tensor_buffer.hpp"

namespace tessera::parallel {
namespace {

using at::Tensor;
using kernels::Kept;
using Tensors = std::vector<Tensor>;

/// [T, n] as [tp, T / tp, n].
Tensor by_rank(const Tensor& tokens, const TokenChunks& how) {
  return tokens.view({how.tp->size(), tokens.size(0) / how.tp->size(), tokens.size(1)});
}

/// Chunks of a piece of `rows` rows that are not empty.
int chunks_of(std::int64_t rows, const TokenChunks& how) {
  return static_cast<int>(filled_chunks(rows, how.count));
}

Tensor tokens_like(const Tensor& other, std::int64_t tokens, std::int64_t features) {
  return at::empty({tokens, features}, other.options());
}

/// One chunk on its way.
struct Transfer {
  Range rows;   ///< of each rank's piece
  Tensor data;  ///< [tp, rows, n]
  Tensor sent;  ///< what must live until the request is done
  comm::Request request;
};

Transfer start_gather(const Tensor& piece, int chunk, const TokenChunks& how) {
  Transfer transfer;
  transfer.rows = chunk_of(piece.size(0), how.count, chunk);
  transfer.sent = piece.narrow(0, transfer.rows.begin, transfer.rows.size);
  transfer.data = at::empty({how.tp->size(), transfer.rows.size, piece.size(1)}, piece.options());
  transfer.request = how.tp->all_gather(buffer_of(transfer.sent), buffer_of(transfer.data));
  return transfer;
}

/// use(rank, rows, tokens) for each range of rows of each rank's piece: first this rank's own, and
/// meanwhile(), while the others' travel.
template <class Use, class Meanwhile>
void for_gathered(const Tensor& piece, const TokenChunks& how, Use use, Meanwhile meanwhile) {
  const int self = how.tp->rank(), count = chunks_of(piece.size(0), how);
  std::vector<Transfer> transfers;
  for (int chunk = 0; chunk < count; ++chunk) {
    transfers.push_back(start_gather(piece, chunk, how));
    if (!how.overlap) transfers.back().request.wait();
  }
  for (Transfer& transfer : transfers) {
    use(self, transfer.rows, transfer.sent);
    transfer.request.test();
  }
  meanwhile();
  for (Transfer& transfer : transfers) {
    transfer.request.wait();
    for (int rank = 0; rank < how.tp->size(); ++rank)
      if (rank != self) use(rank, transfer.rows, transfer.data[rank]);
    transfer.data = Tensor();
  }
}

/// make(rank, rows, into) fills each range of rows of each rank's piece with a partial sum; the
/// result is the sum over ranks of this rank's piece, complete once finish() returned.
class Reduction {
 public:
  template <class Make>
  Reduction(std::int64_t tokens, std::int64_t features, const Tensor& like, const TokenChunks& how,
            Make make)
      : piece_(tokens_like(like, tokens / how.tp->size(), features)) {
    const int count = chunks_of(piece_.size(0), how);
    for (int chunk = 0; chunk < count; ++chunk) {
      Transfer transfer;
      transfer.rows = chunk_of(piece_.size(0), how.count, chunk);
      transfer.data = at::empty({how.tp->size(), transfer.rows.size, features}, like.options());
      for (int rank = 0; rank < how.tp->size(); ++rank)
        make(rank, transfer.rows, transfer.data[rank]);
      transfer.sent = piece_.narrow(0, transfer.rows.begin, transfer.rows.size);
      transfer.request = how.tp->reduce_scatter(buffer_of(transfer.data), buffer_of(transfer.sent));
      if (!how.overlap) transfer.request.wait();
      for (Transfer& earlier : transfers_) earlier.request.test();
      transfers_.push_back(std::move(transfer));
    }
  }
  Tensor finish() {
    for (Transfer& transfer : transfers_) transfer.request.wait();
    transfers_.clear();
    return piece_;
  }

 private:
  Tensor piece_;
  std::vector<Transfer> transfers_;
};

Tensor part(const Tensor& tokens_by_rank, int rank, Range rows) {
  return tokens_by_rank[rank].narrow(0, rows.begin, rows.size);
}

/// The gradient of `weight` for outputs' gradients g [tp, T / tp, out] and inputs x [tp, T / tp,
/// in], which are read when they are needed: this rank's tokens first, so that they do not wait for
/// the others', then those before and those after them. These are three sums at most, as in
/// bfloat16 each is rounded. Left for later, as a leaf's may be, it has the same bits.
class WeightGradient {
 public:
  WeightGradient(const Tensor& weight, const Tensor& g, const Tensor& x, const TokenChunks& how)
      : weight_(weight), g_(g), x_(x.detach()), rank_(how.tp->rank()), later_(how.gradients) {
    if (later_ && !later_->puts_off(weight)) later_ = nullptr;
  }
  /// This rank's tokens are there.
  void start() {
    if (weight_.requires_grad() && !later_) sum_ = kernels::mm(g_[rank_].t(), x_[rank_]);
  }
  /// All are. Nothing if the gradient comes later, or never.
  Tensor finish() {
    if (!weight_.requires_grad()) return {};
    if (!later_) return whole();
    later_->defer([*this, leaf = weight_]() mutable {
      later_ = nullptr;
      start();
      add_gradient(leaf, whole());
    });
    return {};
  }

 private:
  Tensor whole() {
    const std::int64_t ranks = g_.size(0);
    for (const Range& others : {Range{0, rank_}, Range{rank_ + 1, ranks - rank_ - 1}}) {
      const auto tokens = [&](const Tensor& of) {
        return of.narrow(0, others.begin, others.size).flatten(0, 1);
      };
      if (others.size > 0) kernels::addmm_(sum_, tokens(g_).t(), tokens(x_));
    }
    return sum_;
  }

  Tensor weight_, g_, x_, sum_;
  std::int64_t rank_;
  WeightGradients* later_;
};

/// Of a piece of the tokens and the weights. Communicators and queues outlive every graph.
class GatheredProducts final : public kernels::Operation {
 public:
  explicit GatheredProducts(const TokenChunks& how) : how_(how) {}

  Tensors forward(Kept& kept, std::span<const Tensor> inputs) override {
    const Tensor& piece = inputs[0];
    const auto weights = inputs.subspan(1);
    kept.save({inputs.begin(), inputs.end()});
    Tensors outputs;
    for (const Tensor& weight : weights)
      outputs.push_back(tokens_like(piece, piece.size(0) * how_.tp->size(), weight.size(0)));
    const auto multiply = [&](int rank, Range rows, const Tensor& tokens) {
      for (std::size_t i = 0; i < weights.size(); ++i) {
        Tensor into = part(by_rank(outputs[i], how_), rank, rows);
        kernels::mm_out(into, tokens, weights[i].t());
      }
    };
    for_gathered(piece, how_, multiply, [] {});
    return outputs;
  }

  Tensors backward(Kept& kept, Tensors gradients) override {
    const Tensors saved = kept.saved();
    const Tensor& piece = saved[0];
    const std::span weights(saved.data() + 1, saved.size() - 1);
    for (Tensor& gradient : gradients) gradient = gradient.contiguous();

    Tensor whole = tokens_like(piece, piece.size(0) * how_.tp->size(), piece.size(1));
    const Tensor mine = piece.contiguous();
    comm::Request gather = how_.tp->all_gather(buffer_of(mine), buffer_of(whole));
    if (!how_.overlap) gather.wait();
    Reduction reduction(
        whole.size(0), whole.size(1), piece, how_, [&](int rank, Range rows, Tensor into) {
          kernels::mm_out(into, part(by_rank(gradients[0], how_), rank, rows), weights[0]);
          for (std::size_t i = 1; i < weights.size(); ++i)
            kernels::addmm_(into, part(by_rank(gradients[i], how_), rank, rows), weights[i]);
        });
    gather.wait();
    Tensors result{Tensor()};
    for (std::size_t i = 0; i < weights.size(); ++i) {
      WeightGradient of_weight(weights[i], by_rank(gradients[i], how_), by_rank(whole, how_), how_);
      of_weight.start();
      result.push_back(of_weight.finish());
    }
    result[0] = reduction.finish();
    return result;
  }

 private:
  TokenChunks how_;
};

/// Of x and weight.
class ReducedProduct final : public kernels::Operation {
 public:
  explicit ReducedProduct(const TokenChunks& how) : how_(how) {}

  Tensors forward(Kept& kept, std::span<const Tensor> inputs) override {
    const Tensor &x = inputs[0], &weight = inputs[1];
    kept.save({x, weight});
    const Tensor tokens = by_rank(x, how_);
    const auto multiply = [&](int rank, Range rows, Tensor into) {
      kernels::mm_out(into, part(tokens, rank, rows), weight.t());
    };
    return {Reduction(x.size(0), weight.size(0), x, how_, multiply).finish()};
  }

  Tensors backward(Kept& kept, Tensors gradients) override {
    const Tensors saved = kept.saved();
    const Tensor &x = saved[0], &weight = saved[1];
    const Tensor whole = tokens_like(x, x.size(0), weight.size(0)), input = at::empty_like(x);
    WeightGradient of_weight(weight, by_rank(whole, how_), by_rank(x, how_), how_);
    const auto multiply = [&](int rank, Range rows, const Tensor& tokens) {
      part(by_rank(whole, how_), rank, rows).copy_(tokens);
      Tensor into = part(by_rank(input, how_), rank, rows);
      kernels::mm_out(into, tokens, weight);
    };
    for_gathered(gradients[0].contiguous(), how_, multiply, [&] { of_weight.start(); });
    return {input, of_weight.finish()};
  }

 private:
  TokenChunks how_;
};

}  // namespace

std::vector<Tensor> gathered_products(const Tensor& piece, std::span<const model::Weight> weights,
                                      const TokenChunks& chunks) {
  Tensors inputs{piece.contiguous()};
  for (const model::Weight& weight : weights) inputs.push_back(weight.value);
  return kernels::apply_all(std::make_unique<GatheredProducts>(chunks), std::move(inputs));
}

Tensor reduced_product(const Tensor& x, const model::Weight& weight, const TokenChunks& chunks) {
  TESSERA_EXPECT(x.size(0) % chunks.tp->size() == 0, "{} tokens on {} ranks", x.size(0),
                 chunks.tp->size());
  return kernels::apply(ReducedProduct(chunks), {x.contiguous(), weight.value});
}

}  // namespace tessera::parallel
