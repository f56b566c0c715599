// SPDX-License-Identifier: Apache-2.0
#include "tessera/parallel/context_attention.hpp"

#include <algorithm>
#include <cmath>

#include "attention_blocks.hpp"
#include "attention_tiles.hpp"
#include "tessera/base/error.hpp"
#include "tessera/kernels/accumulation_type.hpp"
#include "tessera/kernels/operation.hpp"
#include "tessera/parallel/tensor_buffer.hpp"

namespace tessera::parallel {
namespace {

using at::Tensor;
using kernels::Kept;

/// Keys and values (or their gradients) one after the other: what is transferred.
class Packing {
 public:
  Packing(const Tensor& k, const Tensor& v)
      : k_(k.sizes().vec()),
        v_(v.sizes().vec()),
        options_(k.options()),
        type_(kernels::accumulation_type(k)) {}
  std::int64_t numel() const { return c10::multiply_integers(k_) + c10::multiply_integers(v_); }
  Tensor packed(const Tensor& k, const Tensor& v) const {
    return at::cat({k.reshape({-1}), v.reshape({-1})});
  }
  /// Gradients of blocks, in the type that they are summed in.
  Tensor zeros(int blocks) const { return at::zeros({blocks, numel()}, options_.dtype(type_)); }
  KeyValueBlock block(const Tensor& packed) const {
    const std::int64_t keys = c10::multiply_integers(k_);
    const Tensor flat = packed.view({-1});
    return {flat.narrow(0, 0, keys).view(k_), flat.narrow(0, keys, numel() - keys).view(v_)};
  }

 private:
  std::vector<std::int64_t> k_, v_;
  at::TensorOptions options_;
  at::ScalarType type_;
};

/// Sends to the next rank and receives from the one before, all in one group. Undefined tensors do
/// not travel.
class Ring {
 public:
  explicit Ring(comm::Communicator& cp) : cp_(cp) {}
  int size() const { return cp_.size(); }
  /// Whose block is here after `step` rotations.
  int owner(int step) const { return (cp_.rank() + size() - step) % size(); }
  comm::Request rotate(std::initializer_list<Tensor> out, std::initializer_list<Tensor> in) {
    const int next = (cp_.rank() + 1) % size(), previous = (cp_.rank() + size() - 1) % size();
    cp_.group_start();
    for (const Tensor& tensor : out)
      if (tensor.defined()) cp_.send(buffer_of(tensor), next);
    for (const Tensor& tensor : in)
      if (tensor.defined()) cp_.recv(buffer_of(tensor), previous);
    return cp_.group_end();
  }

 private:
  comm::Communicator& cp_;
};

void ring_forward(comm::Communicator& cp, const Packing& packing, const Tensor& mine,
                  AttentionSum& sum) {
  Ring ring(cp);
  Tensor here = mine;
  for (int step = 0; step < ring.size(); ++step) {
    Tensor next;
    comm::Request arriving;
    if (step + 1 < ring.size()) {
      next = at::empty_like(here);
      arriving = ring.rotate({here}, {next});
    }
    sum.add(packing.block(here), ring.owner(step));
    arriving.wait();
    here = next;
  }
}

/// Gradients of the block that was here before follow it one step later, and each rank adds its
/// part when they arrive. Gives those of this rank's own block.
Tensor ring_backward(comm::Communicator& cp, const Packing& packing, Tensor here,
                     AttentionGradient& gradient) {
  Ring ring(cp);
  Tensor behind;
  for (int step = 0; step < ring.size(); ++step) {
    Tensor next, arrived;
    comm::Request arriving;
    if (step + 1 < ring.size()) next = at::empty_like(here);
    if (step > 0) arrived = at::empty_like(behind);
    if (ring.size() > 1)
      arriving = ring.rotate({step + 1 < ring.size() ? here : Tensor(), behind}, {next, arrived});
    const Tensor mine = packing.zeros(1);
    gradient.add(packing.block(here), ring.owner(step), packing.block(mine));
    arriving.wait();
    behind = step > 0 ? arrived.add_(mine) : mine;
    here = next;
  }
  if (ring.size() == 1) return behind;
  Tensor home = at::empty_like(behind);
  ring.rotate({behind}, {home}).wait();
  return home;
}

/// Starts to gather everybody's block; this rank's own is used meanwhile.
template <class Use>
void with_all_blocks(comm::Communicator& cp, const Packing& packing, const Tensor& mine, Use use) {
  const Tensor all = at::empty({cp.size(), packing.numel()}, mine.options());
  comm::Request gathered = cp.all_gather(buffer_of(mine), buffer_of(all));
  use(mine, cp.rank());
  gathered.wait();
  for (int step = 1; step < cp.size(); ++step) {
    const int owner = (cp.rank() + step) % cp.size();
    use(all[owner], owner);
  }
}

void gathered_forward(comm::Communicator& cp, const Packing& packing, const Tensor& mine,
                      AttentionSum& sum) {
  with_all_blocks(cp, packing, mine,
                  [&](const Tensor& block, int owner) { sum.add(packing.block(block), owner); });
}

Tensor gathered_backward(comm::Communicator& cp, const Packing& packing, Tensor mine,
                         AttentionGradient& gradient) {
  const Tensor all = packing.zeros(cp.size()), home = at::empty({packing.numel()}, all.options());
  with_all_blocks(cp, packing, mine, [&](const Tensor& block, int owner) {
    gradient.add(packing.block(block), owner, packing.block(all[owner]));
  });
  cp.reduce_scatter(buffer_of(all), buffer_of(home)).wait();
  return home;
}

/// Of queries, keys, values and sinks, of which there may be none: [0].
class ContextAttention final : public kernels::Operation {
 public:
  explicit ContextAttention(AttentionPlan plan) : plan_(std::move(plan)) {}

  std::vector<Tensor> forward(Kept& kept, std::span<const Tensor> inputs) override {
    const Tensor &q = inputs[0], &k = inputs[1], &v = inputs[2], &sinks = inputs[3];
    kernels::AttentionValue value = of_all_keys(q, {k, v});
    if (sinks.numel() > 0) add_sinks(value, sinks);
    value.out = value.out.to(q.scalar_type());
    kept.save({q, k, v, sinks, value.out, value.logsumexp});
    return {value.out};
  }

  std::vector<Tensor> backward(Kept& kept, std::vector<Tensor> gradients) override {
    const auto saved = kept.saved();
    const Tensor &q = saved[0], &sinks = saved[3];
    const kernels::AttentionValue value{saved[4], saved[5]};
    const auto of = gradients_of(q, {saved[1], saved[2]}, value, gradients[0]);
    return {of.q, of.k, of.v,
            sinks.numel() > 0 ? sinks_gradient(sinks, value, gradients[0]) : Tensor()};
  }

 private:
  kernels::AttentionValue of_all_keys(const Tensor& q, const KeyValueBlock& mine) const {
    if (const auto part = whole_part(plan_, q, mine)) return kernels::attention_part(*part);
    comm::Communicator& cp = *plan_.context.cp;
    const Packing packing(mine.k, mine.v);
    AttentionSum sum(plan_, q, mine.v.size(3));
    if (cp.size() == 1)
      sum.add(mine, 0);
    else
      (in_ring() ? ring_forward : gathered_forward)(cp, packing, packing.packed(mine.k, mine.v),
                                                    sum);
    return sum.value();
  }

  kernels::AttentionGradients gradients_of(const Tensor& q, const KeyValueBlock& mine,
                                           const kernels::AttentionValue& value,
                                           const Tensor& grad_out) const {
    if (const auto part = whole_part(plan_, q, mine))
      return kernels::attention_part_backward(*part, value, grad_out);
    comm::Communicator& cp = *plan_.context.cp;
    const Packing packing(mine.k, mine.v);
    AttentionGradient gradient(plan_, q, value, grad_out);
    const Tensor home = (in_ring() || cp.size() == 1 ? ring_backward : gathered_backward)(
        cp, packing, packing.packed(mine.k, mine.v), gradient);
    const KeyValueBlock own = packing.block(home);
    return {gradient.queries(), own.k.to(mine.k.scalar_type()), own.v.to(mine.v.scalar_type())};
  }

  bool in_ring() const { return plan_.context.rotation == plan::Rotation::ring; }

  AttentionPlan plan_;
};

}  // namespace

const kernels::AttentionSegments& PackedDocuments::segments(std::span<const Range> held,
                                                            at::Device device) const {
  std::call_once(sent_, [&] {
    std::int64_t row = 0;
    for (const Range& range : held) row += range.size;
    std::vector<std::int32_t> begins;
    const auto add = [&](std::int64_t begin) {
      const auto last = static_cast<std::int64_t>(begins.empty() ? begin : begins.back());
      segments_.longest = std::max(segments_.longest, begin - last);
      begins.push_back(static_cast<std::int32_t>(begin));
    };
    for (std::int64_t b = 0; b < std::ssize(begins_); ++b)
      for (const std::int64_t begin : document_runs(held, begins_[static_cast<std::size_t>(b)]))
        add(b * row + begin);
    add(std::ssize(begins_) * row);
    const Tensor on_host = at::empty({std::ssize(begins)},
                                     at::TensorOptions(at::kInt).pinned_memory(device.is_cuda()));
    std::ranges::copy(begins, on_host.mutable_data_ptr<std::int32_t>());
    segments_.begins = on_host.to(device, /*non_blocking=*/true);
  });
  return segments_;
}

Tensor context_attention(const model::Attention& input, const ContextParallel& context,
                         std::shared_ptr<const PackedDocuments> documents) {
  TESSERA_EXPECT(
      input.q.size(1) == context.cut.positions() && input.k.size(1) == context.cut.positions(),
      "attention of {} queries to {} keys where each rank has {} positions", input.q.size(1),
      input.k.size(1), context.cut.positions());
  TESSERA_EXPECT(!documents || documents->begins().empty() ||
                     std::cmp_equal(documents->begins().size(), input.q.size(0)),
                 "documents of {} sequences for {}", documents->begins().size(), input.q.size(0));
  const double scale =
      input.scale > 0 ? input.scale : 1 / std::sqrt(static_cast<double>(input.q.size(3)));
  const Tensor sinks = input.sinks.defined() ? input.sinks : at::empty({0}, input.q.options());
  return kernels::apply(ContextAttention({context, std::move(documents), scale, input.window}),
                        {input.q, input.k, input.v, sinks});
}

}  // namespace tessera::parallel
