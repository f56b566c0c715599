// SPDX-License-Identifier: Apache-2.0
// A checkpoint of every mesh loaded on every other: the bits of each whole weight, of its moments
// and of each bias.
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "mpi/train/state_fixture.hpp"

namespace tessera::test {
namespace {

struct Bits {
  std::uint64_t weights, moments, buffers;
  bool operator==(const Bits&) const = default;
};

Bits bits_of(Fixture& fixture) { return {fixture.weights(), fixture.moments(), fixture.buffers()}; }

std::string describe(const Case& each) {
  const mesh::Degrees& d = each.degrees;
  return fmt::format("pp{} r{} s{} cp{} tp{} ep{} etp{} {} {} {}{}", d.pp, d.dp_replicate,
                     d.dp_shard, d.cp, d.tp, d.ep, d.etp, each.schedule, each.family,
                     fmt::join(each.cuts, ","), each.alone ? " alone" : "");
}

/// Each mesh trains from values of its own; then each loads what each has saved. The number of
/// pairs.
int load_every_pair(const std::vector<Case>& cases) {
  const SharedFolder folder;
  const auto folder_of = [&](std::size_t i) { return folder.path() / std::to_string(i); };
  std::vector<std::unique_ptr<Fixture>> fixtures;
  std::vector<Bits> bits;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    Fixture& fixture = *fixtures.emplace_back(std::make_unique<Fixture>(cases[i]));
    fixture.trainer().stages().initialize(5 + i);
    for (int step = 0; step < 3; ++step) fixture.trainer().step();
    if (!cases[i].alone || world().rank() == 0) save(fixture, folder_of(i));
    world().control().barrier();
    bits.push_back(bits_of(fixture));
    EXPECT_TRUE(i == 0 || world().rank() != 0 || bits[i].weights != bits[i - 1].weights)
        << "nothing would be shown";
  }
  for (std::size_t from = 0; from < cases.size(); ++from)
    for (std::size_t to = 0; to < cases.size(); ++to) {
      EXPECT_TRUE(train::load_state(fixtures[to]->trainer(), folder_of(from)));
      const Bits loaded = bits_of(*fixtures[to]);
      if (world().rank() != 0) continue;
      EXPECT_TRUE(loaded == bits[from]) << describe(cases[from]) << " on " << describe(cases[to]);
    }
  return static_cast<int>(cases.size() * cases.size());
}

std::vector<Case> dense_meshes() {
  return {{.alone = true},
          {.degrees = {8, 1, 1, 1, 1}},
          {.degrees = {4, 1, 2, 1, 1}, .schedule = "ZBVZeroBubble"},
          {.degrees = {4, 1, 1, 1, 2}, .schedule = "Interleaved1F1B"},
          {.degrees = {2, 1, 2, 1, 2}},
          {.degrees = {2, 1, 4, 1, 1}, .schedule = "DualPipeV"},
          {.degrees = {2, 1, 2, 1, 2}, .cuts = {"layers.2.attention.sdpa"}},
          {.degrees = {2, 2, 2, 1, 1}, .cuts = {"layers.5.feed_forward.w13"}},
          {.degrees = {4, 1, 2, 1, 1},
           .cuts = {"layers.1.attention.wo", "layers.2.feed_forward.w2", "layers.3.ffn_norm"}},
          {.degrees = {4, 1, 1, 2, 1},
           .cuts = {"layers.1.attention.wqkv", "layers.1.attention.sdpa", "layers.1.attention.wo"}},
          {.degrees = {1, 1, 8, 1, 1}},
          {.degrees = {1, 2, 2, 1, 2}},
          {.degrees = {1, 1, 2, 2, 2}},
          {.degrees = {1, 1, 1, 1, 8}}};
}

std::vector<Case> mixture_meshes(const std::string& family) {
  std::vector<Case> cases{
      {.alone = true},
      {.degrees = with_experts({1, 1, 4, 1, 2}, 4)},
      {.degrees = with_experts({2, 1, 4, 1, 1}, 2), .schedule = "DualPipeV"},
      {.degrees = with_experts({1, 2, 4, 1, 1}, 1)},
      {.degrees = with_experts({1, 1, 8, 1, 1}, 1)},
      {.degrees = with_experts({1, 1, 4, 1, 2}, 2, 2)},
      {.degrees = with_experts({2, 1, 2, 1, 2}, 2), .cuts = {"layers.2.attention.wo"}},
      {.degrees = with_experts({4, 1, 1, 1, 2}, 2)}};
  for (Case& each : cases) each.family = family;
  return cases;
}

TEST(ReshardPairs, EveryMeshLoadsEveryOther) {
  int pairs = load_every_pair(dense_meshes());
  for (const char* family : {"mixtral", "deepseek_v3"})
    pairs += load_every_pair(mixture_meshes(family));
  std::vector<Case> untied{
      {.degrees = {8, 1, 1, 1, 1}}, {.degrees = {2, 1, 2, 1, 2}}, {.degrees = {1, 1, 8, 1, 1}}};
  for (Case& each : untied) each.tied = false;
  pairs += load_every_pair(untied);
  if (world().rank() == 0) fmt::print("{} pairs of meshes\n", pairs);
  EXPECT_GE(pairs, 200);
}

}  // namespace
}  // namespace tessera::test
