// SPDX-License-Identifier: Apache-2.0
#include "tessera/plan/memory_need.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "support/error_of.hpp"
#include "tessera/base/error.hpp"
#include "tessera/model_spec/families.hpp"

namespace tessera::plan {
namespace {

using tessera::test::error_of;
using testing::HasSubstr;
using testing::Not;

constexpr double kGiB = 1 << 30;

MemoryNeedOptions bf16() {
  MemoryNeedOptions options;
  options.precision = {DType::f32, DType::bf16, DType::f32};
  options.microbatch_tokens = 8192;
  return options;
}

/// GiB of the poorest pipeline stage, cut evenly by cells.
MemoryNeed need_of(const char* family, const char* flavor, const mesh::Degrees& degrees, int world,
                   const MemoryNeedOptions& options = bf16()) {
  const mesh::Layout layout = mesh::Layout::resolve(degrees, world);
  const model::ModelSpec model = model::spec_of(model::decoder_flavor(family, flavor));
  return memory_need(model, layout, {{0, static_cast<std::int64_t>(model.cells.size())}}, options);
}

TEST(MemoryNeed, OfOneRankIsFourTimesItsWeights) {
  const MemoryNeed need = need_of("llama3", "70B", {1, 1, 1, 1, 1}, 1);
  EXPECT_NEAR(static_cast<double>(need.weights) / kGiB, 70.55e9 * 4 / kGiB, 1);
  EXPECT_EQ(need.state(), 4 * need.weights);
  EXPECT_GT(static_cast<double>(need.total()) / kGiB, 1051);
  EXPECT_LT(static_cast<double>(need.total()) / kGiB, 1080) << "a lower bound, with no guess";
}

TEST(MemoryNeed, IsThatOfTheTypes) {
  MemoryNeedOptions options = bf16();
  options.precision.master = options.moments = DType::bf16;
  const MemoryNeed wide = need_of("llama3", "8B", {1, 1, 1, 1, 1}, 1),
                   need = need_of("llama3", "8B", {1, 1, 1, 1, 1}, 1, options);
  EXPECT_EQ(2 * need.weights, wide.weights);
  EXPECT_EQ(need.gradients, wide.gradients) << "in the type that they are reduced in";
  EXPECT_EQ(need.optimizer, 2 * need.weights);
  options.precision.reduce = DType::bf16;
  EXPECT_EQ(need_of("llama3", "8B", {1, 1, 1, 1, 1}, 1, options).gradients, need.weights);
}

TEST(MemoryNeed, WeightsInBytesTakeOneEach) {
  MemoryNeedOptions options = bf16();
  const mesh::Degrees sharded{1, 1, 8, 1, 1}, alone{1, 1, 1, 1, 1};
  const auto gathered = [&](const mesh::Degrees& degrees, int world) {
    return need_of("llama3", "8B", degrees, world, options).gathered;
  };
  options.linears.recipe = LinearRecipe::tensorwise;
  EXPECT_EQ(gathered(sharded, 8), gathered(alone, 1));
  const std::int64_t embedding = std::int64_t{128256} * 4096;
  EXPECT_EQ(gathered(sharded, 8), 2 * (embedding + 4096)) << "the output layer and its norm";
  options.linears.gathers_bytes = true;
  EXPECT_EQ(gathered(sharded, 8), 2 * embedding) << "the embedding is no product";
  options.precision.compute = DType::f32;
  EXPECT_EQ(gathered(alone, 1), embedding) << "the output layer: others are read where they are";
  options.linears.gathers_bytes = false;
  EXPECT_EQ(gathered(alone, 1), 0);
}

TEST(MemoryNeed, EveryAxisThatCutsParametersCutsIt) {
  const double whole = static_cast<double>(need_of("llama3", "8B", {1, 1, 1, 1, 1}, 1).state());
  for (const mesh::Degrees& degrees :
       {mesh::Degrees{1, 1, 4, 1, 1}, {1, 1, 1, 4, 1}, {1, 1, 1, 1, 4}, {1, 1, 2, 1, 2}})
    EXPECT_NEAR(static_cast<double>(need_of("llama3", "8B", degrees, 4).state()), whole / 4,
                0.01 * whole);
  EXPECT_EQ(static_cast<double>(need_of("llama3", "8B", {1, 4, 1, 1, 1}, 4).state()), whole)
      << "replicas are copies";
}

TEST(MemoryNeed, OfAPipelineStageIsThatOfItsCells) {
  const mesh::Layout layout = mesh::Layout::resolve({2, 1, 1, 1, 1}, 2);
  const model::ModelSpec model = model::spec_of(model::decoder_flavor("llama3", "8B"));
  const auto cells = static_cast<std::int64_t>(model.cells.size());
  const MemoryNeed first = memory_need(model, layout, {{0, cells / 2}}, bf16());
  const MemoryNeed last = memory_need(model, layout, {{cells / 2, cells - cells / 2}}, bf16());
  EXPECT_NEAR(static_cast<double>(first.weights + last.weights), model.parameter_count() * 4.0,
              1e6);
  EXPECT_GT(last.activations, first.activations) << "the last stage has the logits";
}

/// Whatever the times of the cells say, one of the ranks takes as much.
TEST(MemoryNeed, OfStagesThatAreTimedFirstIsTheLeastOfTheCutLayers) {
  const auto needs = [](const char* split) {
    const JobPlan plan = plan_job(
        config::resolve({"--data", "x", "--model.flavor", "8B", "--training.local_batch_size", "4",
                         "--parallelism.pipeline_parallel_degree", "4",
                         "--parallelism.pipeline_parallel_split", split}),
        4, 0);
    std::vector<std::int64_t> bytes;
    for (int rank = 0; rank < 4; ++rank)
      bytes.push_back(memory_need(plan, schedule::PipelineRank(rank)).value().total());
    return bytes;
  };
  const std::vector<std::int64_t> layers = needs("layers"), measured = needs("measured");
  EXPECT_EQ(measured, std::vector<std::int64_t>(4, std::ranges::min(layers)));
  EXPECT_GT(std::ranges::min(layers), 0);
  EXPECT_LT(std::ranges::min(layers), std::ranges::max(layers));
}

TEST(MemoryNeed, ExpertsAreCutByTheirRanks) {
  const mesh::Degrees dense{1, 1, 4, 1, 1};
  mesh::Degrees shared = dense;
  shared.ep = 4;
  const MemoryNeed apart = need_of("mixtral", "debugmodel", dense, 4),
                   together = need_of("mixtral", "debugmodel", shared, 4);
  EXPECT_NEAR(static_cast<double>(apart.weights), static_cast<double>(together.weights), 1000);
  EXPECT_LT(together.gathered, apart.gathered) << "fewer experts are gathered on a rank";
}

TEST(MemoryNeed, FrozenWeightsHaveNoMoments) {
  MemoryNeedOptions options = bf16();
  options.trains = false;
  EXPECT_EQ(need_of("llama3", "8B", {1, 1, 1, 1, 1}, 1, options).optimizer, 0);
}

TEST(MemoryNeed, FloatWeightsOfOneRankAreNotGathered) {
  MemoryNeedOptions options = bf16();
  EXPECT_GT(need_of("llama3", "8B", {1, 1, 1, 1, 1}, 1, options).gathered, 0);
  options.precision.compute = DType::f32;
  EXPECT_EQ(need_of("llama3", "8B", {1, 1, 1, 1, 1}, 1, options).gathered, 0);
}

TEST(MemoryNeed, WhatDoesNotFitIsRefusedWithBothFigures) {
  const MemoryNeed need{400LL << 30, 400LL << 30, 800LL << 30, 0, 0};
  EXPECT_NO_THROW(check_need("m", need, need.total(), need.total(), "on rank 0"));
  EXPECT_NO_THROW(check_need("m", need, need.total(), 0, "on rank 0"))
      << "what is not known refuses nothing";
  const std::string error = error_of(ExitCode::environment, [&] {
    check_need("llama3 70B", need, need.total(), 16LL << 30, "on rank 0 (node7)");
  });
  EXPECT_THAT(
      error,
      HasSubstr("llama3 70B needs at least 1.56 TiB on rank 0 (node7), where 16.0 GiB are free "
                "(weights 400 GiB, gradients 400 GiB, optimizer 800 GiB"));
  EXPECT_THAT(error, HasSubstr("use 100 times as many ranks or more"));
}

TEST(MemoryNeed, OneProcessIsToldToUseAnotherNode) {
  const MemoryNeed need{1 << 20, 0, 0, 0, 1 << 10};
  const std::string error = error_of(ExitCode::environment, [&] {
    check_need("m", need, need.total(), 1 << 19, "in one process", Remedy::more_memory);
  });
  EXPECT_THAT(error, HasSubstr(" in one process, where "));
  EXPECT_THAT(error, HasSubstr("; use a node with more free memory, or a smaller model"));
  EXPECT_THAT(error, Not(HasSubstr("optimizer")));
}

}  // namespace
}  // namespace tessera::plan
