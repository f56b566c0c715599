// SPDX-License-Identifier: Apache-2.0
// Attention over sequences that the ranks share against one softmax over the whole sequence,
// forward and gradients.
#include "tessera/parallel/context_attention.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "mpi/comm/mpi_main.hpp"
#include "mpi/train/place.hpp"
#include "simulated_work.hpp"
#include "support/relative_distance.hpp"
#include "tessera/parallel/tensor_buffer.hpp"

namespace tessera::parallel {
namespace {

using at::Tensor;
using test::Place;
using test::relative_distance;
using test::world;

struct Case {
  bool balanced = true;
  plan::Rotation rotation = plan::Rotation::ring;
  std::int64_t kv_heads = 4, value_dim = 8, window = 0;
  bool sinks = false, documents = false;
  double scale = 0;
  at::ScalarType type = at::kDouble;
  comm::Backend backend = comm::Backend::mpi;

  std::string name() const {
    return fmt::format("{} {} kv{} values of {} window {}{}{}{} {}",
                       rotation == plan::Rotation::ring ? "ring" : "all_gather",
                       balanced ? "balanced" : "in order", kv_heads, value_dim, window,
                       sinks ? " sinks" : "", documents ? " documents" : "",
                       scale > 0 ? " scaled" : "",
                       backend == comm::Backend::strict ? "strict" : "mpi");
  }
};

const Place& place() {
  static const Place place(world());
  return place;
}

/// Communicators are made once for all cases: on a GPU one takes half a second.
class ContextAttention : public testing::Test {
 public:
  static void TearDownTestSuite() { made().clear(); }
  /// `wanted` on the host, and NCCL on a device.
  static comm::Communicator& communicator(comm::Backend wanted) {
    const comm::Backend backend = place().device.is_cpu() ? wanted : place().backend;
    auto& found = made()[backend];
    if (!found) found = world().make(backend, "cp");
    return *found;
  }

 private:
  static std::map<comm::Backend, std::unique_ptr<comm::Communicator>>& made() {
    static std::map<comm::Backend, std::unique_ptr<comm::Communicator>> all;
    return all;
  }
};

constexpr std::int64_t kBatch = 2, kSeq = 32, kHeads = 4, kHeadDim = 8;

std::shared_ptr<const PackedDocuments> documents() {
  return std::make_shared<const PackedDocuments>(Documents{{0, 5, 6, 21}, {0, 16, 30}});
}

/// The same on every rank.
model::Attention whole_input(const Case& c) {
  at::manual_seed(11);
  const auto options = at::TensorOptions(at::kDouble);
  model::Attention input;
  input.q = at::randn({kBatch, kSeq, kHeads, kHeadDim}, options);
  input.k = at::randn({kBatch, kSeq, c.kv_heads, kHeadDim}, options);
  input.v = at::randn({kBatch, kSeq, c.kv_heads, c.value_dim}, options);
  if (c.sinks) input.sinks = at::randn({kHeads}, options);
  input.scale = c.scale;
  input.window = c.window;
  for (Tensor* tensor : {&input.q, &input.k, &input.v, &input.sinks})
    if (tensor->defined()) *tensor = tensor->to(place().device, c.type);
  return input;
}

/// [B, S, S]
Tensor visible(const Case& c) {
  const Tensor back = at::arange(kSeq).unsqueeze(1) - at::arange(kSeq);
  Tensor mask = back.ge(0);
  if (c.window > 0) mask = mask.logical_and(back.lt(c.window));
  std::vector<Tensor> rows;
  const auto packed = documents();
  for (const auto& starts : packed->begins()) {
    Tensor id = at::zeros({kSeq}, at::kLong);
    for (const std::int64_t start : starts) id.narrow(0, start, kSeq - start) += 1;
    rows.push_back(c.documents ? mask.logical_and(id.unsqueeze(1).eq(id)) : mask);
  }
  return at::stack(rows);
}

Tensor by_the_book(const model::Attention& in, const Case& c) {
  const std::int64_t group = kHeads / c.kv_heads;
  const Tensor q = in.q.transpose(1, 2), k = in.k.repeat_interleave(group, 2).transpose(1, 2),
               v = in.v.repeat_interleave(group, 2).transpose(1, 2);
  const double scale = c.scale > 0 ? c.scale : 1 / std::sqrt(static_cast<double>(kHeadDim));
  Tensor scores = (at::matmul(q, k.transpose(-1, -2)) * scale)
                      .masked_fill(visible(c).unsqueeze(1).logical_not(), -HUGE_VAL);
  if (in.sinks.defined())
    scores = at::cat({scores, in.sinks.view({1, -1, 1, 1}).expand({kBatch, -1, kSeq, 1})}, -1);
  return at::matmul(at::softmax(scores, -1).narrow(-1, 0, kSeq), v).transpose(1, 2);
}

/// This rank's positions of a whole tensor.
Tensor held(const Tensor& whole, const plan::SequenceCut& cut, int rank) {
  std::vector<Tensor> parts;
  for (const Range& range : cut.ranges(rank))
    parts.push_back(whole.narrow(1, range.begin, range.size));
  return at::cat(parts, 1);
}

model::Attention leaves(const model::Attention& from,
                        const std::function<Tensor(const Tensor&)>& take) {
  model::Attention input = from;
  for (Tensor* tensor : {&input.q, &input.k, &input.v})
    *tensor = take(*tensor).detach().clone().requires_grad_(true);
  if (from.sinks.defined()) input.sinks = from.sinks.detach().clone().requires_grad_(true);
  return input;
}

model::Attention on_host(model::Attention input) {
  for (Tensor* tensor : {&input.q, &input.k, &input.v, &input.sinks})
    if (tensor->defined()) *tensor = tensor->to(at::kCPU, at::kDouble);
  return input;
}

void expect_by_the_book(const Case& c) {
  SCOPED_TRACE(c.name());
  const double tolerance = c.type == at::kDouble ? 1e-12 : c.type == at::kFloat ? 1e-5 : 3e-2;
  comm::Communicator& cp = ContextAttention::communicator(c.backend);
  const plan::SequenceCut cut = plan::SequenceCut::make(kSeq, cp.size(), c.balanced);
  const model::Attention whole = leaves(on_host(whole_input(c)), [](const Tensor& x) { return x; });
  const Tensor expected = by_the_book(whole, c), grad = at::randn_like(expected);
  expected.backward(grad);

  const auto mine = [&](const Tensor& x) { return held(x, cut, cp.rank()); };
  const model::Attention local = leaves(whole_input(c), mine);
  const Tensor out =
      context_attention(local, {&cp, cut, c.rotation}, c.documents ? documents() : nullptr);
  EXPECT_EQ(out.scalar_type(), c.type);
  EXPECT_LE(relative_distance(out, mine(expected)), tolerance);
  out.backward(mine(grad).to(place().device, c.type));
  EXPECT_LE(relative_distance(local.q.grad(), mine(whole.q.grad())), tolerance) << "queries";
  EXPECT_LE(relative_distance(local.k.grad(), mine(whole.k.grad())), tolerance) << "keys";
  EXPECT_LE(relative_distance(local.v.grad(), mine(whole.v.grad())), tolerance) << "values";
  if (!c.sinks) return;
  // each rank has its own queries' part
  Tensor sinks = local.sinks.grad().to(at::kDouble).contiguous();
  cp.all_reduce(buffer_of(sinks), comm::Op::sum).wait();
  EXPECT_LE(relative_distance(sinks, whole.sinks.grad()), tolerance) << "sinks";
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const plan::Rotation rotation : {plan::Rotation::ring, plan::Rotation::all_gather})
    for (const bool balanced : {true, false})
      for (const bool documents : {false, true})
        for (const std::int64_t window : {0, 3, 11}) {
          Case c;
          c.rotation = rotation;
          c.balanced = balanced;
          c.documents = documents;
          c.window = window;
          c.backend = all.size() % 2 ? comm::Backend::strict : comm::Backend::mpi;
          all.push_back(c);
          c.kv_heads = all.size() % 3 == 0 ? 1 : 2;
          c.sinks = true;
          c.value_dim = balanced ? 8 : 5;
          c.scale = documents ? 0.4 : 0;
          all.push_back(c);
        }
  return all;
}

TEST_F(ContextAttention, EveryMaskByTheBook) {
  for (const Case& c : cases()) expect_by_the_book(c);
}

/// On a GPU in flash or in cuDNN, without masks.
TEST_F(ContextAttention, EveryMaskByTheBookInHalfPrecision) {
  const test::Work before = test::simulated_work();
  for (Case c : cases()) {
    c.type = at::kBFloat16;
    expect_by_the_book(c);
  }
  test::Work work = test::difference(test::simulated_work(), before);
  if (test::wanted_device() != "sim") return;
  EXPECT_GT(work["launch aten::_flash_attention_forward"], 0);
  EXPECT_GT(work["launch aten::_flash_attention_backward"], 0);
  EXPECT_GT(work["launch aten::_scaled_dot_product_cudnn_attention"], 0);
  EXPECT_GT(work["launch aten::_scaled_dot_product_cudnn_attention_backward"], 0);
  EXPECT_EQ(work["launch aten::masked_fill_"], 0);
}

TEST_F(ContextAttention, SmallerTypes) {
  for (const auto type : {at::kFloat, at::kBFloat16})
    for (const plan::Rotation rotation : {plan::Rotation::ring, plan::Rotation::all_gather}) {
      Case c;
      c.type = type;
      c.rotation = rotation;
      c.kv_heads = 2;
      c.sinks = true;
      expect_by_the_book(c);
    }
}

TEST_F(ContextAttention, TheSameBitsTwice) {
  comm::Communicator& cp = communicator(comm::Backend::mpi);
  const plan::SequenceCut cut = plan::SequenceCut::make(kSeq, cp.size(), true);
  for (const plan::Rotation rotation : {plan::Rotation::ring, plan::Rotation::all_gather}) {
    std::vector<Tensor> results;
    for (int repeat = 0; repeat < 2; ++repeat) {
      Case c;
      c.type = at::kFloat;
      const model::Attention in =
          leaves(whole_input(c), [&](const Tensor& x) { return held(x, cut, cp.rank()); });
      const Tensor out = context_attention(in, {&cp, cut, rotation}, nullptr);
      out.sum().backward();
      results.push_back(at::cat(
          {out.flatten(), in.q.grad().flatten(), in.k.grad().flatten(), in.v.grad().flatten()}));
    }
    EXPECT_TRUE(at::equal(results[0], results[1]));
  }
}

/// Bytes that leave a rank: a ring sends each block n - 1 times forward; backward as often, and
/// gradients n times.
TEST_F(ContextAttention, SendsWhatTheoryGives) {
  comm::Communicator& cp = communicator(comm::Backend::mpi);
  const std::int64_t n = cp.size();
  const plan::SequenceCut cut = plan::SequenceCut::make(kSeq, cp.size(), true);
  Case c;
  c.type = at::kBFloat16;
  c.kv_heads = 2;
  const std::int64_t elements = kBatch * cut.positions() * c.kv_heads * 2 * kHeadDim,
                     travels = n > 1 ? n : 0;
  for (const plan::Rotation rotation : {plan::Rotation::ring, plan::Rotation::all_gather}) {
    const model::Attention in =
        leaves(whole_input(c), [&](const Tensor& x) { return held(x, cut, cp.rank()); });
    const std::int64_t before = cp.traffic().bytes;
    const Tensor out = context_attention(in, {&cp, cut, rotation}, nullptr);
    const std::int64_t between = cp.traffic().bytes;
    out.sum().backward();
    const std::int64_t forward = between - before, backward = cp.traffic().bytes - between;
    const bool ring = rotation == plan::Rotation::ring || n == 1;
    EXPECT_EQ(forward, ring ? (n - 1) * 2 * elements : 2 * elements);
    EXPECT_EQ(backward, ring ? (n - 1) * 2 * elements + travels * 4 * elements
                             : 2 * elements + n * 4 * elements);
  }
}

}  // namespace
}  // namespace tessera::parallel
