// SPDX-License-Identifier: Apache-2.0
#include "tessera/planner/goodput.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "unit/planner/planned_job.hpp"

namespace tessera::planner {
namespace {

/// The slow twin: a run with failures drawn at random, second by second.
double simulated(const Saves& saves, double work, double between_failures) {
  std::mt19937_64 random(7);
  std::exponential_distribution<double> next(1 / between_failures);
  const double lag = saves.durable - saves.cost;
  double clock = 0, kept = 0, failure = next(random);
  bool restarts = false;
  for (int segments = 0; segments < 200'000;) {
    // What is repeated after a failure: the restart, and what was not durable when it came.
    const double take = work + saves.cost + (restarts ? saves.restart + lag : 0);
    if (failure < take) {
      clock += failure;
      restarts = true;
      failure = next(random);
      continue;
    }
    clock += take;
    failure -= take;
    kept += work;
    restarts = false;
    ++segments;
  }
  return kept / clock;
}

TEST(Goodput, IsThatOfDaly) {
  // 447.2 / (10,000 e^0.01 (e^0.04572 - 1)), computed by hand.
  const Saves saves{0, 10, 10, 100};
  EXPECT_NEAR(goodput(saves, std::sqrt(2.0 * 10 * 10'000), 10'000), 0.9464, 1e-4);
  EXPECT_NEAR(goodput(saves, 447.2, 1e12), 447.2 / 457.2, 1e-6) << "nothing fails";
}

TEST(Goodput, IsThatOfASimulatedRun) {
  for (const Saves& saves : {Saves{0, 10, 10, 100}, {0, 60, 60, 900}, {0, 2, 200, 300}})
    for (const double mean : {3'000.0, 30'000.0})
      EXPECT_NEAR(goodput(saves, 500, mean), simulated(saves, 500, mean), 4e-3)
          << saves.cost << " " << mean;
}

TEST(Goodput, SavesByYoungsIntervalInWholeSteps) {
  Saves saves{0, 10, 10, 100};  // 447.2 s
  EXPECT_EQ(steps_between_saves(saves, 100, 10'000), 5);
  EXPECT_EQ(steps_between_saves(saves, 2'000, 10'000), 1);
  saves.durable = 1'000;
  EXPECT_EQ(steps_between_saves(saves, 100, 10'000), 10) << "the last save must be over";
  saves.cost = 0;
  EXPECT_EQ(steps_between_saves(saves, 100, 10'000), 10);
}

TEST(Goodput, SavesTakeWhatTheFileSystemNeeds) {
  PlannedJob job(dense_job());
  job.machine.storage_bytes_per_second = 1e9;
  job.machine.host_bytes_per_second = 50e9;
  const Workload& work = job.space.own_work();
  const Saves waiting = saves_of(work, job.machine, job.stack, true, 0.1);
  EXPECT_NEAR(waiting.bytes, 12 * 8.03e9, 1e8);
  EXPECT_DOUBLE_EQ(waiting.cost, waiting.bytes / 8e9);
  EXPECT_DOUBLE_EQ(waiting.durable, waiting.cost);
  EXPECT_DOUBLE_EQ(waiting.restart, 600 + waiting.cost);
  const Saves beside = saves_of(work, job.machine, job.stack, false, 0.1);
  EXPECT_DOUBLE_EQ(beside.cost, beside.bytes / 400e9 - 0.1) << "a step hides part of the copy";
  EXPECT_DOUBLE_EQ(beside.durable, waiting.durable);
  EXPECT_EQ(saves_of(work, job.machine, job.stack, false, 10).cost, 0);
}

TEST(Goodput, ARunTakesHoursAndEnergy) {
  Workload work;
  work.gpus = 100;
  Price price;
  price.tokens_per_second_per_gpu = 1'000;
  Machine machine;
  machine.watts = 700;
  RunCost run = run_cost(work, price, machine, 1e12, 0.8);
  EXPECT_DOUBLE_EQ(run.seconds, 1.25e7);
  EXPECT_DOUBLE_EQ(run.gpu_hours, 1.25e7 / 36);
  EXPECT_DOUBLE_EQ(run.joules, 1.25e9 * 700);
  EXPECT_FALSE(run.with_nodes);
  machine.node_watts = 1'000;
  run = run_cost(work, price, machine, 1e12, 0.8);
  EXPECT_DOUBLE_EQ(run.joules, 1.25e12);
  EXPECT_TRUE(run.with_nodes);
}

}  // namespace
}  // namespace tessera::planner
