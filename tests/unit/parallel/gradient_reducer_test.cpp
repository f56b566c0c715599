// SPDX-License-Identifier: Apache-2.0
#include "tessera/parallel/gradient_reducer.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace tessera::parallel {
namespace {

using Groups = std::vector<ShardGroup*>;

PlacedParam place_alone(const model::ParamSpec& spec) {
  return {&spec, plan::place(spec, mesh::Layout::resolve({1, 1, 1, 1, 1}, 1), mesh::Rank(0))};
}

/// One rank, one parameter, no model around it.
struct OneGroup {
  explicit OneGroup(const ReducerOptions& options, const GroupOptions& how = {})
      : mesh(mesh::Layout::resolve({1, 1, 1, 1, 1}, 1), mesh::Rank(0)),
        alone(comm::make_self_communicator("one rank")),
        group("w", {place_alone(spec)}, *alone, how),
        reducer(model::ModelSpec(), mesh, options) {
    reducer.add_unit(Groups{&group});
  }
  void add(std::int64_t microbatch, const at::Tensor& gradient) {
    group.params()[0].leaf.mutable_grad() = gradient.clone();
    reducer.add(Groups{&group}, microbatch);
  }
  at::Tensor gradient() { return group.params()[0].gradient; }

  model::ParamSpec spec{"w", {5, 7}, model::Placement::replicated, {}, "w"};
  mesh::DeviceMesh mesh;
  std::unique_ptr<comm::Communicator> alone;
  ShardGroup group;
  GradientReducer reducer;
};

at::Tensor gradient_of(std::int64_t microbatch) {
  at::manual_seed(static_cast<std::uint64_t>(microbatch));
  return at::randn({5, 7});
}

/// Gradients of eleven microbatches, added in the given order.
at::Tensor sum_in_order(const std::vector<std::int64_t>& order) {
  OneGroup one({.tree = true});
  one.reducer.begin_step(static_cast<int>(order.size()));
  for (const std::int64_t microbatch : order) one.add(microbatch, gradient_of(microbatch));
  one.reducer.finish();
  return one.gradient().clone();
}

/// A schedule from a file may run backwards in any order; deterministic mode adds over the same
/// tree.
TEST(GradientReducer, TreeDoesNotDependOnTheOrder) {
  const at::Tensor expected = sum_in_order({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  EXPECT_TRUE(at::equal(sum_in_order({10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0}), expected));
  EXPECT_TRUE(at::equal(sum_in_order({3, 0, 10, 7, 6, 1, 2, 9, 4, 8, 5}), expected));
}

/// Whatever way a microbatch takes into the shard, and a step forgets the one before.
TEST(GradientReducer, AddsTheMicrobatchesOfAStep) {
  GroupOptions wide;
  wide.precision.reduce = at::kDouble;  // in a buffer of its own
  for (const bool each : {false, true})
    for (const bool tree : {false, true})
      for (const GroupOptions& how : {GroupOptions(), wide}) {
        OneGroup one({.each_microbatch = each, .tree = tree}, how);
        for (int step = 0; step < 2; ++step) {
          one.reducer.begin_step(2);
          one.add(0, at::full({5, 7}, 1.0 + step));
          one.add(1, at::full({5, 7}, 2.0));
          one.reducer.finish();
          EXPECT_TRUE(one.gradient().eq(3.0 + step).all().item<bool>()) << each << tree << step;
          one.reducer.end_step();
        }
      }
}

TEST(GradientReducer, FrozenGroupsHaveNoGradient) {
  GroupOptions frozen;
  frozen.trainable = false;
  OneGroup one({}, frozen);
  one.reducer.begin_step(1);
  one.reducer.add(Groups{&one.group}, 0);
  one.reducer.finish();
  EXPECT_FALSE(one.gradient().defined());
  EXPECT_EQ(GradientReducer::accumulator_bytes(one.group), 0);
}

/// The masters of a tied weight are the first stage's, and so is the sum of both gradients.
TEST(GradientReducer, AddsTheGradientOfAGuestToItsHome) {
  OneGroup home({});
  GroupOptions options;
  options.home = &home.group;
  ShardGroup guest("w", {place_alone(home.spec)}, *home.alone, options);
  home.reducer.add_unit(Groups{&guest});
  home.group.params()[0].master.fill_(3);
  guest.start_unshard();
  guest.finish_unshard();
  EXPECT_TRUE(guest.params()[0].leaf.eq(3).all().item<bool>());
  home.reducer.begin_step(1);
  home.add(0, at::full({5, 7}, 1.0));
  guest.params()[0].leaf.mutable_grad() = at::full({5, 7}, 2.0);
  home.reducer.add(Groups{&guest}, 0);
  home.reducer.finish();
  EXPECT_TRUE(home.gradient().eq(3).all().item<bool>());
}

/// Sums over two replicas of `shards` ranks that were started so far, before each of five units and
/// after finish().
std::vector<std::int64_t> replica_sums(int microbatches, bool offload, int shards = 1) {
  const mesh::Layout layout = mesh::Layout::resolve({1, 2, shards, 1, 1}, 2 * shards);
  mesh::DeviceMesh mesh(layout, mesh::Rank(0));  // records calls
  comm::Communicator& fsdp = mesh.along(mesh::Axis::dp_shard);
  const model::ParamSpec spec{"w", {5, 7}, model::Placement::replicated, {}, "w"};
  GroupOptions options;
  options.offload = offload;
  GradientReducer reducer(model::ModelSpec(), mesh, {});
  std::vector<std::unique_ptr<ShardGroup>> groups;
  for (int unit = 0; unit < 5; ++unit) {
    const PlacedParam placed{&spec, plan::place(spec, layout, mesh::Rank(0))};
    groups.push_back(
        std::make_unique<ShardGroup>("w", std::vector<PlacedParam>{placed}, fsdp, options));
    reducer.add_unit(Groups{groups.back().get()});
  }
  std::vector<std::int64_t> calls;
  const auto look = [&] { calls.push_back(mesh.along(mesh::Axis::dp_replicate).traffic().calls); };
  reducer.begin_step(microbatches);
  for (int microbatch = 0; microbatch < microbatches; ++microbatch) {
    calls.clear();
    for (const auto& group : groups) {
      look();
      group->params()[0].leaf.mutable_grad() = gradient_of(microbatch);
      reducer.add(Groups{group.get()}, microbatch);
    }
  }
  reducer.finish();
  look();
  return calls;
}

/// With each unit's gradient, in the last backward.
TEST(GradientReducer, SumsOverReplicasStartInTheLastBackward) {
  const std::vector<std::int64_t> early{0, 1, 2, 3, 4, 5}, late{0, 0, 0, 0, 0, 5};
  EXPECT_EQ(replica_sums(1, false), early);
  EXPECT_EQ(replica_sums(2, false), early);
  EXPECT_EQ(replica_sums(2, true), late) << "copies to host memory would hold backward";
  const std::vector<std::int64_t> after_the_next{0, 0, 1, 2, 3, 5};
  EXPECT_EQ(replica_sums(1, false, 2), after_the_next) << "the host waits for the reduction";
}

TEST(GradientReducer, ForeseesThePartialSums) {
  EXPECT_EQ(OneGroup({}).reducer.waiting_sums(1), 0);
  EXPECT_EQ(OneGroup({}).reducer.waiting_sums(8), 1);
  EXPECT_EQ(OneGroup({.each_microbatch = true}).reducer.waiting_sums(8), 0);
  EXPECT_EQ(OneGroup({.tree = true}).reducer.waiting_sums(8), 1 + 4);
}

}  // namespace
}  // namespace tessera::parallel
