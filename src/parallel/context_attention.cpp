// SPDX-License-Identifier: Apache-2.0
#include "tessera/parallel/context_attention.hpp"

#include <cmath>

#include "attention_blocks.hpp"
#include "tessera/base/error.hpp"
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
      : k_(k.sizes().vec()), v_(v.sizes().vec()), options_(k.options()), type_(sum_type(k)) {}
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

void ring_forward(comm::Communicator& cp, const Packing& packing, Tensor here, AttentionSum& sum) {
  Ring ring(cp);
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
    comm::Communicator& cp = *plan_.context.cp;
    const Packing packing(k, v);
    AttentionSum sum(plan_, q, v.size(3));
    if (cp.size() == 1)
      sum.add({k, v}, 0);
    else if (plan_.context.rotation == plan::Rotation::ring)
      ring_forward(cp, packing, packing.packed(k, v), sum);
    else
      gathered_forward(cp, packing, packing.packed(k, v), sum);
    if (sinks.numel() > 0) sum.add_sinks(sinks);
    const kernels::AttentionValue value = sum.value();
    kept.save({q, k, v, sinks, value.out, value.logsumexp});
    return {value.out};
  }

  std::vector<Tensor> backward(Kept& kept, std::vector<Tensor> gradients) override {
    comm::Communicator& cp = *plan_.context.cp;
    const auto saved = kept.saved();
    const Tensor &q = saved[0], &k = saved[1], &v = saved[2], &sinks = saved[3];
    const Packing packing(k, v);
    AttentionGradient gradient(plan_, q, {saved[4], saved[5]}, gradients[0]);
    const bool ring = plan_.context.rotation == plan::Rotation::ring || cp.size() == 1;
    const Tensor home =
        (ring ? ring_backward : gathered_backward)(cp, packing, packing.packed(k, v), gradient);
    const KeyValueBlock own = packing.block(home);
    return {gradient.queries(), own.k.to(k.scalar_type()), own.v.to(v.scalar_type()),
            sinks.numel() > 0 ? gradient.sinks(sinks) : Tensor()};
  }

 private:
  AttentionPlan plan_;
};

}  // namespace

Tensor context_attention(const model::Attention& input, const ContextParallel& context,
                         std::shared_ptr<const Documents> documents) {
  TESSERA_EXPECT(
      input.q.size(1) == context.cut.positions() && input.k.size(1) == context.cut.positions(),
      "attention of {} queries to {} keys where each rank has {} positions", input.q.size(1),
      input.k.size(1), context.cut.positions());
  TESSERA_EXPECT(
      !documents || documents->empty() || std::cmp_equal(documents->size(), input.q.size(0)),
      "documents of {} sequences for {}", documents->size(), input.q.size(0));
  const double scale =
      input.scale > 0 ? input.scale : 1 / std::sqrt(static_cast<double>(input.q.size(3)));
  const Tensor sinks = input.sinks.defined() ? input.sinks : at::empty({0}, input.q.options());
  return kernels::apply(ContextAttention({context, std::move(documents), scale, input.window}),
                        {input.q, input.k, input.v, sinks});
}

}  // namespace tessera::parallel
