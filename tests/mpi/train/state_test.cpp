// SPDX-License-Identifier: Apache-2.0
// Initial values, checkpoints and resumed runs, on meshes of eight ranks: bit for bit.
#include <gtest/gtest.h>

#include "mpi/train/state_fixture.hpp"
#include "tessera/base/error.hpp"

namespace tessera::test {
namespace {

const std::vector<mesh::Degrees> kMeshes{{2, 1, 2, 1, 2}, {4, 1, 1, 1, 2}, {1, 1, 8, 1, 1},
                                         {1, 2, 2, 1, 2}, {8, 1, 1, 1, 1}, {1, 1, 1, 1, 8}};

TEST(State, InitialValuesDoNotDependOnTheMesh) {
  Fixture alone({.alone = true});
  alone.trainer().stages().initialize(11);
  const std::uint64_t expected = alone.weights();
  for (const mesh::Degrees& degrees : kMeshes) {
    Fixture fixture({degrees});
    fixture.trainer().stages().initialize(11);
    const std::uint64_t hash = fixture.weights();
    if (world().rank() == 0) {
      EXPECT_EQ(hash, expected) << degrees.pp << " " << degrees.dp_shard << " " << degrees.tp;
    }
  }
  alone.trainer().stages().initialize(12);
  EXPECT_NE(alone.weights(), expected);
}

TEST(State, CheckpointLoadsOnEveryMesh) {
  const SharedFolder folder;
  Fixture saved({kMeshes[0]});
  saved.trainer().stages().initialize(5);
  for (int step = 0; step < 2; ++step) saved.trainer().step();
  save(saved, folder.path());
  const std::uint64_t weights = saved.weights(), moments = saved.moments();
  for (const mesh::Degrees& degrees : kMeshes) {
    Fixture loaded({degrees});
    const auto state = train::load_state(loaded.trainer(), folder.path());
    ASSERT_TRUE(state);
    EXPECT_EQ(state->state.step, 2);
    EXPECT_EQ(loaded.trainer().state().optimizer_steps, 2);
    const std::uint64_t hash = loaded.weights(), other = loaded.moments();
    if (world().rank() != 0) continue;
    EXPECT_EQ(hash, weights) << degrees.pp << " " << degrees.dp_shard << " " << degrees.tp;
    EXPECT_EQ(other, moments);
  }
  Fixture alone({.alone = true});
  ASSERT_TRUE(train::load_state(alone.trainer(), folder.path()));
  if (world().rank() == 0) {
    EXPECT_EQ(alone.weights(), weights);
  }
}

/// Experts, and the biases that even them out, from one expert mesh onto others; mixtral's are cut
/// in parts on some.
TEST(State, MixturesLoadOnEveryMesh) {
  for (const std::string family : {"deepseek_v3", "mixtral"}) {
    const SharedFolder folder;
    Fixture saved({.degrees = with_experts({1, 1, 4, 1, 2}, 4), .family = family});
    saved.trainer().stages().initialize(5);
    for (int step = 0; step < 3; ++step)
      saved.trainer().step();  // two steps of a bias may undo each other
    save(saved, folder.path());
    const std::uint64_t weights = saved.weights(), moments = saved.moments();
    const std::vector<at::Tensor> biases = saved.trainer().stages().holdings().buffers;
    EXPECT_EQ(biases.empty(), family == "mixtral");
    for (const mesh::Degrees& degrees :
         {with_experts({2, 1, 4, 1, 1}, 2), with_experts({1, 2, 4, 1, 1}, 1),
          with_experts({1, 1, 8, 1, 1}, 1), with_experts({1, 1, 4, 1, 2}, 2, 2),
          with_experts({4, 1, 1, 1, 2}, 2)}) {
      Fixture loaded({.degrees = degrees, .family = family});
      ASSERT_TRUE(train::load_state(loaded.trainer(), folder.path()));
      const std::uint64_t hash = loaded.weights(), other = loaded.moments();
      const std::vector<at::Tensor> theirs = loaded.trainer().stages().holdings().buffers;
      for (std::size_t i = 0; i < biases.size(); ++i) {
        EXPECT_GT(biases[i].abs().max().item<double>(), 0);
        if (theirs[i].defined()) {
          EXPECT_TRUE(theirs[i].equal(biases[i])) << i;
        }
      }
      if (world().rank() != 0) continue;
      EXPECT_EQ(hash, weights) << family << " " << degrees.pp << " " << degrees.dp_shard << " "
                               << degrees.ep;
      EXPECT_EQ(other, moments);
    }
  }
}

TEST(State, AsynchronousTensorParallelHasTheBitsOfTheSynchronousOne) {
  for (const char* schedule : {"1F1B", "ZBH1"}) {
    std::vector<std::uint64_t> hashes;
    for (const bool async : {false, true}) {
      Fixture fixture({.degrees = {2, 1, 2, 1, 2}, .schedule = schedule, .async = async});
      fixture.trainer().stages().initialize(5);
      for (int step = 0; step < 2; ++step) fixture.trainer().step();
      hashes.push_back(fixture.weights());
    }
    if (world().rank() == 0) {
      EXPECT_EQ(hashes[0], hashes[1]) << schedule;
    }
  }
}

TEST(State, ResumedRunHasTheBitsOfTheUninterruptedOne) {
  const SharedFolder folder;
  Fixture whole({kMeshes[0]});
  whole.trainer().stages().initialize(5);
  for (int step = 0; step < 4; ++step) whole.trainer().step();
  {
    Fixture first({kMeshes[0]});
    first.trainer().stages().initialize(5);
    for (int step = 0; step < 2; ++step) first.trainer().step();
    save(first, folder.path());
  }
  Fixture second({kMeshes[0]});
  ASSERT_TRUE(train::load_state(second.trainer(), folder.path()));
  for (int step = 2; step < 4; ++step) second.trainer().step();
  const std::uint64_t expected = whole.weights(), hash = second.weights();
  if (world().rank() == 0) {
    EXPECT_EQ(hash, expected);
  }
}

/// Pipeline schedules and data-parallel degrees that use the same microbatches add them over the
/// same tree.
TEST(State, DeterministicOrderDoesNotDependOnTheDataParallelDegree) {
  std::vector<std::uint64_t> hashes;
  for (const mesh::Degrees& degrees :
       {mesh::Degrees{8, 1, 1, 1, 1}, mesh::Degrees{4, 1, 2, 1, 1}, mesh::Degrees{2, 1, 4, 1, 1}}) {
    Fixture fixture({.degrees = degrees, .tied = false});
    fixture.trainer().stages().initialize(5);
    for (int step = 0; step < 2; ++step) fixture.trainer().step();
    hashes.push_back(fixture.weights());
  }
  if (world().rank() != 0) return;
  EXPECT_EQ(hashes[0], hashes[1]);
  EXPECT_EQ(hashes[1], hashes[2]);
}

/// Weights of all schedules on several meshes, after as many steps as it takes for a wrong bit to
/// spread; fewer on devices, which may be simulated.
TEST(State, SchedulesGiveTheSameBits) {
  using Pipelines = std::vector<std::pair<std::string, int>>;  // schedule and ranks
  const Pipelines untied{{"1F1B", 4},
                         {"GPipe", 4},
                         {"1F1B", 2},
                         {"Eager1F1B", 4},
                         {"ZBH1", 4},
                         {"LoopedBFS", 2},
                         {"Interleaved1F1B", 2},
                         {"InterleavedZeroBubble", 4},
                         {"ZBVZeroBubble", 4},
                         {"DualPipeV", 2}};
  const Pipelines tied_ones{
      {"1F1B", 4}, {"ZBVZeroBubble", 2}, {"DualPipeV", 2}, {"Interleaved1F1B", 4}};
  const int steps = test_device().is_cpu() ? 8 : 3;
  for (const bool tied : {false, true}) {
    std::uint64_t expected = 0;
    for (const auto& [schedule, pp] : tied ? tied_ones : untied) {
      Fixture fixture({.degrees = {pp, 1, 8 / pp, 1, 1}, .tied = tied, .schedule = schedule});
      fixture.trainer().stages().initialize(5);
      for (int step = 0; step < steps; ++step) fixture.trainer().step();
      const std::uint64_t hash = fixture.weights();
      if (world().rank() != 0) continue;
      if (expected == 0) expected = hash;
      EXPECT_EQ(hash, expected) << schedule << " on " << pp << " pipeline ranks"
                                << (tied ? ", tied" : "");
    }
  }
}

/// Another number of microbatches in each step: the same batches, so the same losses and norms but
/// for rounding.
TEST(State, MicrobatchesMayChangeEachStep) {
  std::vector<train::StepOutcome> steady, changing;
  for (auto* outcomes : {&steady, &changing}) {
    Fixture fixture({.degrees = {4, 1, 2, 1, 1},
                     .schedule = "ZBVZeroBubble",
                     .microbatch_steps = {"1:1", "2:2", "3:1", "4:2"}});
    fixture.trainer().stages().initialize(5);
    for (int step = 1; step <= 4; ++step) {
      if (outcomes == &changing)
        fixture.trainer().set_microbatches(fixture.plan().microbatches_at(step));
      outcomes->push_back(fixture.trainer().step());
      EXPECT_EQ(fixture.trainer().batch_plan().microbatch_rows,
                outcomes == &changing && step % 2 == 1 ? 1 : 2);
    }
  }
  for (std::size_t step = 0; step < steady.size(); ++step) {
    EXPECT_NEAR(changing[step].loss, steady[step].loss, 1e-5 * steady[step].loss);
    EXPECT_NEAR(changing[step].grad_norm, steady[step].grad_norm, 1e-5 * steady[step].grad_norm);
  }
}

/// Several stages on a rank are saved and loaded like one, and an interrupted run goes on with the
/// same bits.
TEST(State, StagesOfARankResume) {
  const SharedFolder folder;
  const mesh::Degrees degrees{4, 1, 2, 1, 1};
  Fixture whole({.degrees = degrees, .schedule = "ZBVZeroBubble"});
  whole.trainer().stages().initialize(5);
  for (int step = 0; step < 2; ++step) whole.trainer().step();
  save(whole, folder.path());
  for (int step = 2; step < 4; ++step) whole.trainer().step();
  Fixture second({.degrees = degrees, .schedule = "Interleaved1F1B"});
  ASSERT_TRUE(train::load_state(second.trainer(), folder.path()));
  for (int step = 2; step < 4; ++step) second.trainer().step();
  const std::uint64_t expected = whole.weights(), moments = whole.moments(),
                      hash = second.weights(), others = second.moments();
  if (world().rank() != 0) return;
  EXPECT_EQ(hash, expected);
  EXPECT_EQ(others, moments);
}

}  // namespace
}  // namespace tessera::test
