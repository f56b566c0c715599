#include "tessera/parallel/shard_group.hpp"

#include <gtest/gtest.h>

namespace tessera::parallel {
namespace {

PlacedParam place_alone(const model::ParamSpec& spec) {
  return {&spec, place(spec, mesh::Layout::resolve({1, 1, 1, 1, 1}, 1), 0)};
}

/// Gradients of eleven microbatches, added in the given order.
at::Tensor sum_in_order(const std::vector<std::int64_t>& order) {
  const model::ParamSpec spec{"w", {5, 7}, model::Placement::replicated, {}, "w"};
  const auto alone = comm::make_self_communicator("one rank");
  ShardGroup group("w", {place_alone(spec)}, {alone.get(), alone.get()}, {});
  for (const std::int64_t microbatch : order) {
    at::manual_seed(static_cast<std::uint64_t>(microbatch));
    group.params()[0].leaf.mutable_grad() = at::randn({5, 7});
    group.accumulate(microbatch, /*tree=*/true);
  }
  group.start_reduction();
  group.finish_reduction();
  return group.params()[0].gradient.clone();
}

/// A schedule from a file may run backwards in any order; deterministic mode adds over the same tree.
TEST(ShardGroup, TreeDoesNotDependOnTheOrder) {
  const at::Tensor expected = sum_in_order({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  EXPECT_TRUE(at::equal(sum_in_order({10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0}), expected));
  EXPECT_TRUE(at::equal(sum_in_order({3, 0, 10, 7, 6, 1, 2, 9, 4, 8, 5}), expected));
}

TEST(ShardGroup, MastersMayLiveElsewhere) {
  const model::ParamSpec spec{"w", {2, 2}, model::Placement::replicated, {}, "w"};
  const auto alone = comm::make_self_communicator("one rank");
  const ShardAxes axes{alone.get(), alone.get()};
  ShardGroup home("w", {place_alone(spec)}, axes, {});
  GroupOptions options;
  options.home = &home;
  ShardGroup guest("w", {place_alone(spec)}, axes, options);
  home.params()[0].master.fill_(3);
  guest.start_unshard();
  guest.finish_unshard();
  EXPECT_TRUE(guest.params()[0].leaf.eq(3).all().item<bool>());
  home.params()[0].gradient.fill_(1);
  guest.params()[0].gradient.fill_(2);
  home.add_gradient(guest);
  EXPECT_TRUE(home.params()[0].gradient.eq(3).all().item<bool>());
}

}  // namespace
}  // namespace tessera::parallel
