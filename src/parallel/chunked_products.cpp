#include "tessera/parallel/chunked_products.hpp"

#include "tessera/base/error.hpp"
#include "tessera/base/shard.hpp"
#include "tessera/parallel/linear.hpp"
#include "tessera/parallel/tensor_buffer.hpp"

namespace tessera::parallel {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

/// [T, n] as [tp, T / tp, n].
Tensor by_rank(const Tensor& tokens, const TokenChunks& how) {
  return tokens.view({how.tp->size(), tokens.size(0) / how.tp->size(), tokens.size(1)});
}

/// Chunks of a piece of `rows` rows that are not empty.
int chunks_of(std::int64_t rows, const TokenChunks& how) {
  const std::int64_t size = std::max<std::int64_t>(1, chunk_size(rows, how.count));
  return static_cast<int>((rows + size - 1) / size);
}

Tensor tokens_like(const Tensor& other, std::int64_t tokens, std::int64_t features) {
  return torch::empty({tokens, features}, other.options());
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
  transfer.data = torch::empty({how.tp->size(), transfer.rows.size, piece.size(1)}, piece.options());
  transfer.request = how.tp->all_gather(buffer_of(transfer.sent), buffer_of(transfer.data));
  return transfer;
}

/// use(rank, rows, tokens) for each range of rows of each rank's piece: first this rank's own, and meanwhile(), while
/// the others' travel.
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

/// make(rank, rows, into) fills each range of rows of each rank's piece with a partial sum; the result is the sum over
/// ranks of this rank's piece, complete once finish() returned.
class Reduction {
 public:
  template <class Make>
  Reduction(std::int64_t tokens, std::int64_t features, const Tensor& like, const TokenChunks& how, Make make)
      : piece_(tokens_like(like, tokens / how.tp->size(), features)) {
    const int count = chunks_of(piece_.size(0), how);
    for (int chunk = 0; chunk < count; ++chunk) {
      Transfer transfer;
      transfer.rows = chunk_of(piece_.size(0), how.count, chunk);
      transfer.data = torch::empty({how.tp->size(), transfer.rows.size, features}, like.options());
      for (int rank = 0; rank < how.tp->size(); ++rank) make(rank, transfer.rows, transfer.data[rank]);
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

/// Communicators outlive every graph, so the graph carries their address.
void remember(AutogradContext* context, const TokenChunks& how) {
  context->saved_data["tp"] = reinterpret_cast<std::int64_t>(how.tp);
  context->saved_data["count"] = how.count;
  context->saved_data["overlap"] = how.overlap;
  context->saved_data["gradients"] = reinterpret_cast<std::int64_t>(how.gradients);
}
TokenChunks recall(AutogradContext* context) {
  return {reinterpret_cast<comm::Communicator*>(context->saved_data["tp"].toInt()),
          static_cast<int>(context->saved_data["count"].toInt()), context->saved_data["overlap"].toBool(),
          reinterpret_cast<WeightGradients*>(context->saved_data["gradients"].toInt())};
}

/// The gradient of `weight` for outputs' gradients g [tp, T / tp, out] and inputs x [tp, T / tp, in], which are read
/// when they are needed: this rank's tokens first, then the others', so that the first part does not wait for these.
/// Left for later, as a leaf's may be, it has the same bits.
class WeightGradient {
 public:
  WeightGradient(const Tensor& weight, const Tensor& g, const Tensor& x, const TokenChunks& how)
      : weight_(weight), g_(g), x_(x.detach()), rank_(how.tp->rank()), later_(how.gradients) {
    if (later_ && !later_->puts_off(weight)) later_ = nullptr;
  }
  /// This rank's tokens are there.
  void start() {
    if (weight_.requires_grad() && !later_) sum_ = g_[rank_].t().mm(x_[rank_]);
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
    for (std::int64_t rank = 0; rank < g_.size(0); ++rank)
      if (rank != rank_) sum_.addmm_(g_[rank].t(), x_[rank]);
    return sum_;
  }

  Tensor weight_, g_, x_, sum_;
  std::int64_t rank_;
  WeightGradients* later_;
};

struct GatheredProducts : torch::autograd::Function<GatheredProducts> {
  static tensor_list forward(AutogradContext* context, const Tensor& piece, at::TensorList weights, TokenChunks how) {
    remember(context, how);
    tensor_list saved{piece}, outputs;
    saved.insert(saved.end(), weights.begin(), weights.end());
    context->save_for_backward(saved);
    for (const Tensor& weight : weights)
      outputs.push_back(tokens_like(piece, piece.size(0) * how.tp->size(), weight.size(0)));
    const auto multiply = [&](int rank, Range rows, const Tensor& tokens) {
      for (std::size_t i = 0; i < weights.size(); ++i) {
        Tensor into = part(by_rank(outputs[i], how), rank, rows);
        torch::mm_out(into, tokens, weights[i].t());
      }
    };
    for_gathered(piece, how, multiply, [] {});
    return outputs;
  }

  static tensor_list backward(AutogradContext* context, tensor_list gradients) {
    const TokenChunks how = recall(context);
    const tensor_list saved = context->get_saved_variables();
    const Tensor& piece = saved[0];
    const std::span weights(saved.data() + 1, saved.size() - 1);
    for (Tensor& gradient : gradients) gradient = gradient.contiguous();

    Tensor whole = tokens_like(piece, piece.size(0) * how.tp->size(), piece.size(1));
    const Tensor mine = piece.contiguous();
    comm::Request gather = how.tp->all_gather(buffer_of(mine), buffer_of(whole));
    if (!how.overlap) gather.wait();
    Reduction reduction(whole.size(0), whole.size(1), piece, how, [&](int rank, Range rows, Tensor into) {
      torch::mm_out(into, part(by_rank(gradients[0], how), rank, rows), weights[0]);
      for (std::size_t i = 1; i < weights.size(); ++i)
        into.addmm_(part(by_rank(gradients[i], how), rank, rows), weights[i]);
    });
    gather.wait();
    tensor_list result{Tensor()};
    for (std::size_t i = 0; i < weights.size(); ++i) {
      WeightGradient of_weight(weights[i], by_rank(gradients[i], how), by_rank(whole, how), how);
      of_weight.start();
      result.push_back(of_weight.finish());
    }
    result[0] = reduction.finish();
    result.push_back(Tensor());  // of TokenChunks
    return result;
  }
};

struct ReducedProduct : torch::autograd::Function<ReducedProduct> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& weight, TokenChunks how) {
    remember(context, how);
    context->save_for_backward({x, weight});
    const Tensor tokens = by_rank(x, how);
    return Reduction(
               x.size(0), weight.size(0), x, how,
               [&](int rank, Range rows, Tensor into) { torch::mm_out(into, part(tokens, rank, rows), weight.t()); })
        .finish();
  }

  static tensor_list backward(AutogradContext* context, tensor_list gradients) {
    const TokenChunks how = recall(context);
    const tensor_list saved = context->get_saved_variables();
    const Tensor &x = saved[0], &weight = saved[1];
    const Tensor whole = tokens_like(x, x.size(0), weight.size(0)), input = torch::empty_like(x);
    WeightGradient of_weight(weight, by_rank(whole, how), by_rank(x, how), how);
    const auto multiply = [&](int rank, Range rows, const Tensor& tokens) {
      part(by_rank(whole, how), rank, rows).copy_(tokens);
      Tensor into = part(by_rank(input, how), rank, rows);
      torch::mm_out(into, tokens, weight);
    };
    for_gathered(gradients[0].contiguous(), how, multiply, [&] { of_weight.start(); });
    return {input, of_weight.finish(), Tensor()};
  }
};

}  // namespace

std::vector<Tensor> gathered_products(const Tensor& piece, std::span<const model::Weight> weights,
                                      const TokenChunks& chunks) {
  tensor_list values;
  for (const model::Weight& weight : weights) values.push_back(weight.value);
  return GatheredProducts::apply(piece.contiguous(), at::TensorList(values), chunks);
}

Tensor reduced_product(const Tensor& x, const model::Weight& weight, const TokenChunks& chunks) {
  TESSERA_EXPECT(x.size(0) % chunks.tp->size() == 0, "{} tokens on {} ranks", x.size(0), chunks.tp->size());
  return ReducedProduct::apply(x.contiguous(), weight.value, chunks);
}

}  // namespace tessera::parallel
