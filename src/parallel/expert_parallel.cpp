// SPDX-License-Identifier: Apache-2.0
#include "tessera/parallel/expert_parallel.hpp"

#include <memory>
#include <numeric>

#include "tessera/kernels/operation.hpp"
#include "tessera/parallel/tensor_buffer.hpp"

namespace tessera::parallel {

using at::Tensor;
using kernels::Kept;
using Counts = std::vector<std::int64_t>;

namespace {

/// Of rows to other ranks, and of their gradients back. Exchange and communicator outlive every
/// graph.
class Way {
 public:
  Way(Counts out, Counts in, const ExpertExchange& exchange, comm::Communicator& ep)
      : out_(std::move(out)), in_(std::move(in)), exchange_(exchange), ep_(ep) {}

  void send(const Tensor& rows) { start(rows, out_, in_); }
  void send_back(const Tensor& gradients) { start(gradients, in_, out_); }
  /// What will be there after wait().
  const Tensor& arriving() const { return arriving_; }
  /// The rows that have arrived.
  Tensor wait() {
    request_.wait();
    sent_ = Tensor();
    return std::exchange(arriving_, Tensor());
  }
  const ExpertExchange& exchange() const { return exchange_; }
  /// Nobody waits for rows of a pass that has failed, on whichever thread its graph goes.
  ~Way() { request_.abandon(); }
  Way(const Way&) = delete;
  Way& operator=(const Way&) = delete;

 private:
  void start(const Tensor& rows, const Counts& out, const Counts& in) {
    const std::int64_t width = rows.size(1);
    const auto elements = [width](Counts counts) {
      for (std::int64_t& count : counts) count *= width;
      return counts;
    };
    arriving_ =
        at::empty({std::accumulate(in.begin(), in.end(), std::int64_t{0}), width}, rows.options());
    sent_ = rows.contiguous();
    request_ =
        ep_.all_to_all_v(buffer_of(sent_), elements(out), buffer_of(arriving_), elements(in));
  }

  Counts out_, in_;
  const ExpertExchange& exchange_;
  comm::Communicator& ep_;
  Tensor sent_, arriving_;  ///< while rows are on their way
  comm::Request request_;
};

/// Rows leave. Their gradients have left in Return, and arrive here. In between, gradients of what
/// the forward computed in between are computed, and another pass.
class Departure final : public kernels::Operation {
 public:
  explicit Departure(std::shared_ptr<Way> way) : way_(std::move(way)) {}
  std::vector<Tensor> forward(Kept&, std::span<const Tensor> inputs) override {
    way_->send(inputs[0]);
    return {way_->arriving()};
  }
  std::vector<Tensor> backward(Kept&, std::vector<Tensor> /*gradients*/) override {
    way_->exchange().meanwhile();
    return {way_->wait()};
  }

 private:
  std::shared_ptr<Way> way_;
};

/// Rows that have arrived. Their gradients leave. Autograd gets those, although others come back:
/// it wants as many as there were rows.
class Return final : public kernels::Operation {
 public:
  explicit Return(std::shared_ptr<Way> way) : way_(std::move(way)) {}
  std::vector<Tensor> forward(Kept&, std::span<const Tensor> inputs) override {
    return {inputs[0]};
  }
  std::vector<Tensor> backward(Kept&, std::vector<Tensor> gradients) override {
    way_->send_back(gradients[0]);
    return gradients;
  }

 private:
  std::shared_ptr<Way> way_;
};

}  // namespace

ExpertExchange::ExpertExchange(comm::Communicator& ep, const plan::ExpertRows& rows,
                               at::Device device)
    : ep_(ep), rows_(rows) {
  if (rows_.capacity > 0) overflows_ = at::zeros({1}, at::TensorOptions(at::kLong).device(device));
}

model::FixedRows ExpertExchange::fixed_rows(const model::ChoiceCounts& of) const {
  const plan::ExpertChoices choices{of.tokens, of.top_k, of.experts, ranks()};
  return {plan::rows_for_each_rank(rows_.capacity, choices),
          plan::tokens_for_each_rank(rows_.capacity, choices)};
}

void ExpertExchange::expect_fit(const Tensor& counts, std::int64_t most) const {
  overflows_.add_(counts.gt(most).sum());
}

Tensor ExpertExchange::counts(const Tensor& sent) const {
  const Tensor mine = sent.view({ranks(), -1}).contiguous(), received = at::empty_like(mine);
  comm::Communicator& ranks = fixed_ ? ep_ : ep_.host();
  ranks.all_to_all(buffer_of(mine), buffer_of(received)).wait();
  return received;
}

model::Arrival ExpertExchange::send(const Tensor& rows, const Tensor& out, const Tensor& in) const {
  const auto rows_of_ranks = [&](const Tensor& counts) {
    const auto size = static_cast<std::size_t>(ranks());
    if (fixed_) return Counts(size, rows.size(0) / ranks());
    const Tensor sums = counts.view({ranks(), -1}).sum(1);
    return Counts(sums.data_ptr<std::int64_t>(), sums.data_ptr<std::int64_t>() + size);
  };
  const auto way = std::make_shared<Way>(rows_of_ranks(out), rows_of_ranks(in), *this, ep_);
  return [way, leaving = kernels::apply(Departure(way), {rows})] {
    way->wait();
    return kernels::apply(Return(way), {leaving});
  };
}

}  // namespace tessera::parallel
