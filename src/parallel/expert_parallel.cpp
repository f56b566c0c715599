// SPDX-License-Identifier: Apache-2.0
#include "tessera/parallel/expert_parallel.hpp"

#include "tessera/kernels/operation.hpp"
#include "tessera/parallel/tensor_buffer.hpp"

namespace tessera::parallel {
namespace {

using at::Tensor;
using kernels::Kept;
using Counts = std::vector<std::int64_t>;

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

Tensor ExpertExchange::counts(const Tensor& sent) const {
  const Tensor mine = sent.view({ep_.size(), -1}).contiguous(), received = at::empty_like(mine);
  ep_.host().all_to_all(buffer_of(mine), buffer_of(received)).wait();
  return received;
}

Tensor ExpertExchange::to_experts(const Tensor& rows, const Tensor& sent,
                                  const Tensor& received) const {
  return kernels::apply(
      Exchange(rows_of_ranks(sent.view(received.sizes())), rows_of_ranks(received), ep_), {rows});
}

Tensor ExpertExchange::from_experts(const Tensor& rows, const Tensor& sent,
                                    const Tensor& received) const {
  return kernels::apply(
      Exchange(rows_of_ranks(received), rows_of_ranks(sent.view(received.sizes())), ep_), {rows});
}

}  // namespace tessera::parallel
