// SPDX-License-Identifier: Apache-2.0
#include "tessera/parallel/expert_parallel.hpp"

#include "tessera/kernels/operation.hpp"
#include "tessera/parallel/tensor_buffer.hpp"

namespace tessera::parallel {

using at::Tensor;
using kernels::Kept;
using Counts = std::vector<std::int64_t>;

namespace {

/// Rows for (from) each rank, from a matrix [ranks, experts of one] in host memory.
Counts rows_of_ranks(const Tensor& matrix) {
  const Tensor rows = matrix.sum(1).contiguous();
  return {rows.data_ptr<std::int64_t>(), rows.data_ptr<std::int64_t>() + rows.numel()};
}

Tensor exchanged(const Tensor& rows, const Counts& out, const Counts& in, comm::Communicator& ep) {
  const std::int64_t width = rows.size(1);
  const auto elements = [width](Counts counts) {
    for (std::int64_t& count : counts) count *= width;
    return counts;
  };
  std::int64_t arriving = 0;
  for (const std::int64_t count : in) arriving += count;
  const Tensor contiguous = rows.contiguous(),
               arrived = at::empty({arriving, width}, rows.options());
  const Counts out_elements = elements(out), in_elements = elements(in);
  ep.all_to_all_v(buffer_of(contiguous), out_elements, buffer_of(arrived), in_elements).wait();
  return arrived;
}

/// Of rows. The communicator outlives every graph.
class Exchange final : public kernels::Operation {
 public:
  Exchange(Counts out, Counts in, comm::Communicator& ep)
      : out_(std::move(out)), in_(std::move(in)), ep_(ep) {}
  std::vector<Tensor> forward(Kept&, std::span<const Tensor> inputs) override {
    return {exchanged(inputs[0], out_, in_, ep_)};
  }
  std::vector<Tensor> backward(Kept&, std::vector<Tensor> gradients) override {
    return {exchanged(gradients[0], in_, out_, ep_)};
  }

 private:
  Counts out_, in_;
  comm::Communicator& ep_;
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

/// The rows for each rank begin at a multiple of a fixed number. Where it is too small, some get
/// the places of others.
model::SentRows ExpertExchange::spaced(model::SentRows sorted, const Tensor& sent) const {
  if (!fixed_) return sorted;
  const at::NoGradGuard no_grad;
  const std::int64_t ranks = ep_.size(), choices = sorted.order.size(0);
  const std::int64_t rows =
      fixed_rows({sorted.places.size(0), sorted.places.size(1), sent.size(0)}).choices;
  const Tensor counts = sent.view({ranks, -1}).sum(1), ends = counts.cumsum(0),
               begins = ends - counts;
  expect_fit(counts, rows);
  const auto numbers = counts.options();
  const Tensor row = at::arange(choices, numbers),
               rank = at::searchsorted(ends, row, /*out_int32=*/false, /*right=*/true);
  const Tensor moves = at::arange(ranks, numbers) * rows - begins,
               place = (row + moves.index_select(0, rank)).clamp_max(ranks * rows - 1);
  const Tensor from = (begins.unsqueeze(1) + at::arange(rows, numbers)).clamp_max(choices - 1);
  return {sorted.order.index_select(0, from.flatten()),
          place.index_select(0, sorted.places.flatten()).view(sorted.places.sizes())};
}

Tensor ExpertExchange::counts(const Tensor& sent, std::int64_t rows) const {
  const Tensor mine = sent.view({ep_.size(), -1}).contiguous(), received = at::empty_like(mine);
  comm::Communicator& ranks = fixed_ ? ep_ : ep_.host();
  ranks.all_to_all(buffer_of(mine), buffer_of(received)).wait();
  if (!fixed_) return received;
  const Tensor ends = received.cumsum(1).clamp_max(rows / ep_.size());
  return ends.diff(1, 1, at::zeros({ep_.size(), 1}, ends.options()));
}

Tensor ExpertExchange::to_experts(const Tensor& rows, const Tensor& sent,
                                  const Tensor& received) const {
  const auto [out, in] = row_counts(rows, sent, received);
  return kernels::apply(Exchange(out, in, ep_), {rows});
}

Tensor ExpertExchange::from_experts(const Tensor& rows, const Tensor& sent,
                                    const Tensor& received) const {
  const auto [out, in] = row_counts(rows, sent, received);
  return kernels::apply(Exchange(in, out, ep_), {rows});
}

/// For and from each rank, on the way to experts.
std::pair<Counts, Counts> ExpertExchange::row_counts(const Tensor& rows, const Tensor& sent,
                                                     const Tensor& received) const {
  if (!fixed_) return {rows_of_ranks(sent.view(received.sizes())), rows_of_ranks(received)};
  const auto ranks = static_cast<std::size_t>(ep_.size());
  const Counts each(ranks, rows.size(0) / ep_.size());
  return {each, each};
}

}  // namespace tessera::parallel
