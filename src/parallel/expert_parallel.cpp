#include "tessera/parallel/expert_parallel.hpp"

#include "tessera/parallel/tensor_buffer.hpp"

namespace tessera::parallel {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

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
  const Tensor contiguous = rows.contiguous(), arrived = torch::empty({arriving, width}, rows.options());
  const Counts out_elements = elements(out), in_elements = elements(in);
  ep.all_to_all_v(buffer_of(contiguous), out_elements, buffer_of(arrived), in_elements).wait();
  return arrived;
}

/// Communicators outlive every graph, so the graph carries their address.
struct Exchange : torch::autograd::Function<Exchange> {
  static Tensor forward(AutogradContext* context, const Tensor& rows, const Counts& out, const Counts& in,
                        comm::Communicator* ep) {
    context->saved_data["out"] = out;
    context->saved_data["in"] = in;
    context->saved_data["ep"] = reinterpret_cast<std::int64_t>(ep);
    return exchanged(rows, out, in, *ep);
  }
  static tensor_list backward(AutogradContext* context, tensor_list gradients) {
    const Counts out = context->saved_data["out"].toIntVector(), in = context->saved_data["in"].toIntVector();
    auto& ep = *reinterpret_cast<comm::Communicator*>(context->saved_data["ep"].toInt());
    return {exchanged(gradients[0], in, out, ep), {}, {}, {}};
  }
};

}  // namespace

Tensor ExpertExchange::counts(const Tensor& sent) const {
  const Tensor mine = sent.view({ep_.size(), -1}).contiguous(), received = torch::empty_like(mine);
  ep_.host().all_to_all(buffer_of(mine), buffer_of(received)).wait();
  return received;
}

Tensor ExpertExchange::to_experts(const Tensor& rows, const Tensor& sent, const Tensor& received) const {
  return Exchange::apply(rows, rows_of_ranks(sent.view(received.sizes())), rows_of_ranks(received), &ep_);
}

Tensor ExpertExchange::from_experts(const Tensor& rows, const Tensor& sent, const Tensor& received) const {
  return Exchange::apply(rows, rows_of_ranks(received), rows_of_ranks(sent.view(received.sizes())), &ep_);
}

}  // namespace tessera::parallel
