// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "mpi/comm/mpi_main.hpp"
#include "mpi/train/gradient_case.hpp"
#include "mpi/train/spread.hpp"

namespace tessera::test {
namespace {

GradientError expect_equal(const GradientCase& row) { return expect_equal_gradients(world(), row); }

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

/// One row in this many, on 1 and 2 ranks, 4, 8, and GPUs.
std::size_t one_in(std::size_t few, std::size_t four, std::size_t eight, std::size_t device) {
  const int n = world().size();
  return n >= 8 ? eight : on_device() ? device : n >= 4 ? four : few;
}

/// A spread of one row in `each`.
void expect_spread(const std::vector<GradientCase>& rows, std::size_t each) {
  expect_equal_spread(world(), rows, (rows.size() + each - 1) / each);
}

TEST(Gradient, Meshes) { expect_spread(gradient_cases(world().size()), one_in(3, 5, 11, 3)); }

/// Device memory over MPI and strict by turns: pipelines, shards, attention over ranks and experts.
TEST(Gradient, DeviceMemoryOverMpi) {
  const int n = world().size();
  if (!on_device() || n < 2) GTEST_SKIP() << "no device memory is sent";
  for (const auto& rows :
       {gradient_cases(n), policy_cases(n), context_cases(n), mixture_cases(n)}) {
    std::vector<GradientCase> some;
    for (std::size_t i = rows.size() / 8; i < rows.size(); i += (rows.size() + 1) / 2)
      some.push_back(rows[i]);
    for (GradientCase& row : some) row.over_nccl = false;
    expect_spread(some, 1);
  }
}

TEST(Gradient, Float32) {
  for (const bool tied : {false, true}) {
    GradientCase row;
    row.tied = tied;
    row.dtype = "float32";
    row.tp = world().size() % 2 == 0 ? 2 : 1;
    row.pp = world().size() % 4 == 0 ? 2 : 1;
    row.dp = world().size() / row.tp / row.pp;
    expect_equal(row);
  }
}

/// With every policy, and gradients added up whole or sharded.
TEST(Gradient, WeightsInBfloat16) {
  for (const std::string reshard : {"always", "never", "default"})
    for (const bool tied : {false, true}) {
      GradientCase row;
      row.dtype = "float32";
      row.bfloat16_weights = true;
      row.reshard = reshard;
      row.tied = tied;
      row.accumulation = 2;
      if (reshard == "always") row.adding = "sharded";
      row.tp = world().size() % 2 == 0 && tied ? 2 : 1;
      row.pp = world().size() % 4 == 0 ? 2 : 1;
      row.dp = world().size() / row.tp / row.pp;
      expect_equal(row);
    }
}

TEST(Gradient, Replicated) {
  GradientCase row;
  row.replicate = world().size() >= 2 ? 2 : 1;
  row.dp = world().size() / row.replicate;
  row.recompute = "full";
  expect_equal(row);
}

TEST(Gradient, CutsInsideBlocks) {
  expect_spread(sub_layer_cases(world().size()), one_in(2, 3, 11, 2));
}

TEST(Gradient, Schedules) { expect_spread(schedule_cases(world().size()), one_in(2, 7, 7, 2)); }

TEST(Gradient, SchedulesOfOtherModels) {
  expect_spread(mixed_schedule_cases(world().size()), one_in(3, 7, 13, 3));
}

/// Two stages on the first rank, one on the second, B and I with W mixed.
TEST(Gradient, ScheduleFromAFile) {
  if (world().size() % 2 != 0) GTEST_SKIP() << "it needs two pipeline ranks";
  const std::string folder = testing::TempDir();
  GradientCase row;
  row.pp = 2;
  row.dp = world().size() / 2;
  row.schedule = "PipelineScheduleMulti";
  row.csv = comm::broadcast_string(
      world().control(), folder + "tessera-schedule-" + std::to_string(getpid()) + ".csv", 0);
  if (world().rank() == 0)
    std::ofstream(row.csv)
        << "0F0,0F1,0F2,0F3,2F0,2I0,2F1,2I1,2W1,2W0,2F2,2B2,2F3,2B3,0I0,0B1,0W0,0B3,0B2\n"
        << ",1F0,1F1,1F2,1F3,1I0,1W0,1B1,1B2,1B3\n";
  world().control().barrier();
  for (const bool tied : {false, true}) {
    row.tied = tied;
    row.deterministic = tied;  // microbatches of stage 0 come out of order
    expect_equal(row);
  }
  world().control().barrier();
  if (world().rank() == 0) std::filesystem::remove(row.csv);
}

TEST(Gradient, ShardingPolicies) {
  expect_spread(policy_cases(world().size()), one_in(2, 3, 7, 2));
}

TEST(Gradient, RegisteredBuffers) {
  if (!on_device() || world().size() < 2) GTEST_SKIP() << "NCCL exchanges nothing";
  expect_spread(registered_cases(world().size()), 1);
}

TEST(Gradient, TensorParallel) { expect_spread(tensor_cases(world().size()), one_in(2, 5, 11, 5)); }

TEST(Gradient, FusedLoss) { expect_spread(fused_loss_cases(world().size()), one_in(1, 3, 7, 3)); }

TEST(Gradient, Recompute) { expect_spread(recompute_cases(world().size()), one_in(2, 3, 7, 2)); }
TEST(Gradient, ContextParallel) {
  expect_spread(context_cases(world().size()), one_in(2, 5, 11, 5));
}

TEST(Gradient, MixturesOfExperts) {
  expect_spread(mixture_cases(world().size()), one_in(4, 7, 14, 13));
}

/// The same bytes and scales on every mesh: only sums differ.
TEST(Gradient, RoundedProducts) {
  expect_spread(rounded_cases(world().size()), one_in(2, 5, 10, 5));
  expect_spread(rounded_copies_cases(world().size()), one_in(1, 2, 4, 2));
  std::vector<GradientCase> blockwise = blockwise_cases(world().size());
  if (world().size() >= 4)  // each rank would round the weights of all experts: 9 s of two cores
    std::erase_if(blockwise, [](const GradientCase& row) { return !row.family.empty(); });
  expect_spread(blockwise, one_in(2, 5, 5, 2));
}

/// A weight that is rounded before its gather has the bytes of one that is rounded after it.
TEST(Gradient, WeightsGatheredInBytes) {
  expect_spread(gathered_bytes_cases(world().size()), one_in(2, 4, 5, 5));
}

/// Tokens of an expert are rounded together, wherever they come from.
TEST(Gradient, RoundedExperts) {
  expect_spread(rounded_experts_cases(world().size()), one_in(1, 3, 5, 3));
}

/// Scales follow the masters from step to step.
TEST(Gradient, WeightsGatheredInBytesOverThreeSteps) {
  GradientCase row;
  row.recipe = "tensorwise";
  row.gathers_bytes = true;
  row.pp = world().size() >= 4 ? 2 : 1;
  row.tp = world().size() >= 8 ? 2 : 1;
  row.dp = world().size() / row.pp / row.tp;
  EXPECT_LE(compare_steps(world(), row), 1e-9) << row.name();
}

/// Where rows do not fit, a step is computed again.
TEST(Gradient, ExpertsWithACapacity) {
  expect_spread(capacity_cases(world().size()), one_in(7, 31, 67, 11));
}

/// A rank returns the sum of its experts.
TEST(Gradient, TokensThatAreSentOnce) {
  expect_spread(sent_once_cases(world().size()), one_in(3, 11, 31, 5));
}

/// Loads are counted once, whatever is recomputed or pipelined, and biases follow them. On 8 ranks
/// each family sends in one of the two ways.
TEST(Gradient, MixturesOverThreeSteps) {
  for (const std::string family : {"deepseek_v3", "qwen3_moe", "gpt_oss"})
    for (const bool once : {false, true}) {
      if (world().size() >= 8 && once != (family == "deepseek_v3")) continue;
      GradientCase row = mixture_case(world().size(), family);
      row.sends_once = once;
      EXPECT_LE(compare_steps(world(), row), 1e-9) << row.name();
    }
}

/// Every row of the matrix in each type. Routes of experts may flip in bfloat16, so that only dense
/// rows have it.
std::vector<GradientCase> typed_cases(int world) {
  std::vector<GradientCase> rows;
  for (const GradientCase& row : all_cases(world))
    for (const char* dtype : {"float64", "float32", "bfloat16"}) {
      if (std::string(dtype) == "bfloat16" && !row.family.empty()) continue;
      // The simulated GPU has no products of bfloat16 into float32.
      if (std::string(dtype) == "bfloat16" && on_device() && row.fused_loss != "never") continue;
      rows.push_back(row);
      rows.back().dtype = dtype;
    }
  return rows;
}

/// TESSERA_ROWS rows of the matrix in which most pairs of axes, schedules, policies and types meet:
/// for devices, which are slower than the host when they are simulated.
TEST(Spread, DISABLED_PairsOfProperties) {
  const Spread spread = spread_of(typed_cases(world().size()), rows_from_environment(20));
  std::map<std::string, double> worst;
  for (const GradientCase& row : spread.rows) {
    worst[row.dtype] = std::max(worst[row.dtype], expect_equal(row).worst);
  }
  if (world().rank() != 0) return;
  std::printf("spread: %zu rows on %d ranks, %zu of %zu pairs;", spread.rows.size(), world().size(),
              spread.pairs, spread.all_pairs);
  for (const auto& [dtype, error] : worst) std::printf(" worst %.2e in %s", error, dtype.c_str());
  std::printf("\n");
}

/// All of it, which takes hours: ctest -L matrix. One back end a call; with TESSERA_ROWS=n
/// a spread of n rows; with TESSERA_MATRIX_ROWS=TEXT the rows with it in their names; with
/// TESSERA_MATRIX_LOSS=always the loss is fused where it can be.
TEST(Matrix, DISABLED_EveryFactorisation) {
  const auto backend = environment("TESSERA_MATRIX_BACKEND") == "strict" ? comm::Backend::strict
                                                                         : comm::Backend::mpi;
  int count = 0;
  double worst[2] = {0, 0};
  const std::string loss = environment("TESSERA_MATRIX_LOSS"),
                    named = environment("TESSERA_MATRIX_ROWS");
  std::vector<GradientCase> rows = all_cases(world().size());
  for (auto& more : {rounded_cases(world().size()), blockwise_cases(world().size()),
                     gathered_bytes_cases(world().size()), rounded_experts_cases(world().size()),
                     rounded_copies_cases(world().size()), capacity_cases(world().size()),
                     sent_once_cases(world().size()), overlapped_cases(world().size())})
    std::ranges::copy(more, std::back_inserter(rows));
  std::erase_if(
      rows, [&](const GradientCase& row) { return row.name().find(named) == std::string::npos; });
  ASSERT_FALSE(rows.empty()) << "no row on " << world().size() << " ranks has " << named;
  rows = spread_of(rows, rows_from_environment(rows.size())).rows;
  for (const char* dtype : {"float64", "float32"})
    for (GradientCase row : rows) {
      // In float32 sums differ by more than what separates two bytes somewhere.
      if ((!row.recipe.empty() || !row.experts.empty()) && dtype != row.dtype) continue;
      row.dtype = dtype;
      row.backend = backend;
      // Recipes round the output layer of all these rows; a fused loss does not.
      if (loss == "always" && row.recipe.empty() && (row.loss_parallel || row.tp == 1))
        row.fused_loss = loss;
      double& so_far = worst[row.dtype == "float32"];
      so_far = std::max(so_far, expect_equal(row).worst);
      ++count;
    }
  if (world().rank() == 0)
    std::printf(
        "matrix: %d rows on %d ranks, worst relative difference %.2e (float64), %.2e (float32)\n",
        count, world().size(), worst[0], worst[1]);
}

}  // namespace
}  // namespace tessera::test
