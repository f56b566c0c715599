// SPDX-License-Identifier: Apache-2.0
#include "tessera/parallel/expert_parallel.hpp"

#include "tessera/kernels/operation.hpp"
#include "tessera/parallel/tensor_buffer.hpp"

namespace tessera::parallel {

using at::Tensor;
using kernels::Kept;
using Counts = std::vector<std::int64_t>;

namespace {

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

Tensor ExpertExchange::counts(const Tensor& sent) const {
  const Tensor mine = sent.view({ranks(), -1}).contiguous(), received = at::empty_like(mine);
  comm::Communicator& ranks = fixed_ ? ep_ : ep_.host();
  ranks.all_to_all(buffer_of(mine), buffer_of(received)).wait();
  return received;
}

Tensor ExpertExchange::travel(const Tensor& rows, const Tensor& out, const Tensor& in) const {
  const auto rows_of_ranks = [&](const Tensor& counts) {
    const auto size = static_cast<std::size_t>(ranks());
    if (fixed_) return Counts(size, rows.size(0) / ranks());
    const Tensor sums = counts.view({ranks(), -1}).sum(1);
    return Counts(sums.data_ptr<std::int64_t>(), sums.data_ptr<std::int64_t>() + size);
  };
  return kernels::apply(Exchange(rows_of_ranks(out), rows_of_ranks(in), ep_), {rows});
}

}  // namespace tessera::parallel
