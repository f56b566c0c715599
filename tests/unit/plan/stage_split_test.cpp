// SPDX-License-Identifier: Apache-2.0
#include "tessera/plan/stage_split.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "support/error_of.hpp"
#include "tessera/base/error.hpp"
#include "tessera/model_spec/families.hpp"
#include "tessera/plan/stage_table.hpp"

namespace tessera::plan {
namespace {

using tessera::test::error_of;

constexpr std::int64_t kCellsOfBlock = 7;

model::ModelSpec with_layers(std::int64_t layers) {
  model::DecoderShape shape;
  shape.name = "little";
  shape.dim = 16;
  shape.layers = layers;
  shape.heads = shape.kv_heads = 4;
  shape.head_dim = 4;
  shape.hidden = 48;
  shape.vocab = 32;
  return model::spec_of(shape);
}

/// Blocks of each stage; the embedding is one cell, norm and output are two.
std::vector<std::int64_t> blocks(std::int64_t layers, int stages) {
  std::vector<std::int64_t> result;
  for (const Range& range : split_by_layers(with_layers(layers), stages, 1, 1))
    result.push_back(range.size);
  result.front() -= 1;
  result.back() -= 2;
  for (std::int64_t& cells : result) {
    EXPECT_EQ(cells % kCellsOfBlock, 0);
    cells /= kCellsOfBlock;
  }
  return result;
}

void expect_covers(const model::ModelSpec& model, const StageRanges& ranges) {
  std::int64_t next = 0;
  for (const Range& range : ranges) {
    EXPECT_EQ(range.begin, next);
    EXPECT_GT(range.size, 0);
    next = range.end();
  }
  EXPECT_EQ(next, static_cast<std::int64_t>(model.cells.size()));
}

std::vector<std::string> firsts(const model::ModelSpec& model, const StageRanges& ranges) {
  std::vector<std::string> names;
  for (const Range& range : ranges)
    names.push_back(model.cells[static_cast<std::size_t>(range.begin)].name);
  return names;
}

double dearest(const StageRanges& ranges, const std::vector<double>& costs) {
  double most = 0;
  for (const Range& range : ranges)
    most = std::max(most,
                    std::accumulate(costs.begin() + range.begin, costs.begin() + range.end(), 0.0));
  return most;
}

TEST(StageSplit, FollowsTorchTitan) {
  EXPECT_EQ(blocks(32, 4), (std::vector<std::int64_t>{8, 9, 8, 7}));
  EXPECT_EQ(blocks(6, 2), (std::vector<std::int64_t>{3, 3}));
  EXPECT_EQ(blocks(4, 4), (std::vector<std::int64_t>{1, 2, 1, 0}));
}

TEST(StageSplit, CoversEveryCellOnce) {
  for (std::int64_t layers = 1; layers <= 20; ++layers) {
    const model::ModelSpec model = with_layers(layers);
    const std::vector<double> costs = flops_of_cells(model, 8);
    for (int stages = 1; stages <= layers + 2; ++stages) {
      SCOPED_TRACE(fmt::format("{} layers on {}", layers, stages));
      expect_covers(model, split_by_layers(model, stages, 1, 1));
      expect_covers(model, split_balanced(model, stages, costs, Granularity::blocks));
      expect_covers(model, split_balanced(model, stages, costs, Granularity::cells));
    }
  }
}

TEST(StageSplit, RefusesMoreStagesThanParts) {
  const model::ModelSpec model = with_layers(2);
  EXPECT_THAT(error_of(ExitCode::usage, [&] { split_by_layers(model, 5, 1, 1); }),
              testing::HasSubstr("choose at most 4"));
  const std::vector<double> costs = flops_of_cells(model, 8);
  EXPECT_THAT(
      error_of(ExitCode::usage, [&] { split_balanced(model, 5, costs, Granularity::blocks); }),
      testing::HasSubstr("the 4 places"));
  EXPECT_NO_THROW(split_balanced(model, 17, costs, Granularity::cells));
  EXPECT_THROW(split_balanced(model, 18, costs, Granularity::cells), Error);
}

TEST(StageSplit, CutsWhereItIsTold) {
  const model::ModelSpec model = with_layers(4);
  const StageRanges ranges =
      split_at(model, {"layers.1.attention.wk", "layers.2", "layers.3.feed_forward.w2"});
  expect_covers(model, ranges);
  EXPECT_EQ(firsts(model, ranges),
            (std::vector<std::string>{"tok_embeddings", "layers.1.attention.wqkv",
                                      "layers.2.attention_norm", "layers.3.feed_forward.w2"}));
  EXPECT_THAT(error_of(ExitCode::usage, [&] { split_at(model, {"layers.1.atention.wo"}); }),
              testing::HasSubstr("did you mean 'layers.1.attention.wo'"));
  EXPECT_THAT(error_of(ExitCode::usage,
                       [&] {
                         split_at(model, {"layers.2", "layers.1"});
                       }),
              testing::HasSubstr("layers.1"));
  EXPECT_THAT(error_of(ExitCode::usage, [&] { split_at(model, {"tok_embeddings"}); }),
              testing::HasSubstr("tok_embeddings"));
}

TEST(StageSplit, TakesTorchTitansModuleLists) {
  const model::ModelSpec model = with_layers(3);
  const StageRanges ranges = split_by_modules(
      model, {{"tok_embeddings", "layers.0"}, {"layers.1", "layers.2", "norm", "output"}});
  expect_covers(model, ranges);
  EXPECT_EQ(firsts(model, ranges)[1], "layers.1.attention_norm");
  EXPECT_THAT(error_of(ExitCode::usage,
                       [&] {
                         split_by_modules(model, {{"tok_embeddings", "layers.0"},
                                                  {"layers.2", "norm", "output"}});
                       }),
              testing::HasSubstr("layers.2 is listed where layers.1.attention_norm is expected"));
  EXPECT_THAT(error_of(ExitCode::usage,
                       [&] {
                         split_by_modules(model, {{"tok_embeddings"},
                                                  {"layers.0", "layers.1", "layers.2", "norm"}});
                       }),
              testing::HasSubstr("output"));
  EXPECT_THAT(error_of(ExitCode::usage,
                       [&] {
                         split_by_modules(model, {{}, {"tok_embeddings"}});
                       }),
              testing::HasSubstr("stage 0 has no modules"));
}

/// The balanced split beside every other one.
TEST(StageSplit, BalancedIsTheBest) {
  const model::ModelSpec model = with_layers(2);
  std::vector<double> costs;
  for (std::size_t i = 0; i < model.cells.size(); ++i)
    costs.push_back(static_cast<double>(1 + i * 7 % 5));
  const auto cells = static_cast<std::int64_t>(model.cells.size());
  double best = HUGE_VAL;
  for (std::int64_t a = 1; a < cells; ++a)
    for (std::int64_t b = a + 1; b < cells; ++b)
      best = std::min(best, dearest({{0, a}, {a, b - a}, {b, cells - b}}, costs));
  EXPECT_EQ(dearest(split_balanced(model, 3, costs, Granularity::cells), costs), best);
}

TEST(StageSplit, AmongEqualsMovesLeast) {
  const model::ModelSpec model = with_layers(2);
  // Only the embedding and the output cost anything: every cut between is as good, and in front of
  // a norm only x crosses.
  std::vector<double> costs(model.cells.size(), 0);
  costs.front() = costs.back() = 1;
  const StageRanges ranges = split_balanced(model, 2, costs, Granularity::cells);
  EXPECT_EQ(crossing_features(
                model.cells[static_cast<std::size_t>(ranges[schedule::StageIndex(1)].begin)]),
            model.dimensions.dim);
}

/// 5 layers on 4 stages: whole layers cannot be even.
TEST(StageSplit, SubLayerCutsShortenTheSlowestStage) {
  const model::ModelSpec model = with_layers(5);
  const std::vector<double> costs = flops_of_cells(model, 8);
  const double layers = dearest(split_by_layers(model, 4, 1, 1), costs);
  const double whole = dearest(split_balanced(model, 4, costs, Granularity::blocks), costs);
  const double fine = dearest(split_balanced(model, 4, costs, Granularity::cells), costs);
  EXPECT_LE(whole, layers);
  EXPECT_LT(fine, 0.8 * layers);
}

TEST(StageTable, SaysWhatCutsCostAndGain) {
  const model::ModelSpec model = with_layers(5);
  StageTableOptions options{8, 64, 4, 1e9, 1e12};
  const StageRanges fine = split_balanced(model, 4, flops_of_cells(model, 8), Granularity::cells);
  const std::string table = stage_table(model, fine, schedule::StageMap::loop(4), options);
  EXPECT_THAT(table, testing::HasSubstr("tok_embeddings .. "));
  EXPECT_THAT(table, testing::HasSubstr("cut at layers."));
  EXPECT_THAT(table, testing::Not(testing::HasSubstr("WARNING")));
  options.bytes_per_second = 1;  // a wire so slow that no cut inside a block is worth its bytes
  EXPECT_THAT(stage_table(model, fine, schedule::StageMap::loop(4), options),
              testing::HasSubstr("WARNING: it is slower"));
  EXPECT_THAT(
      stage_table(model, split_by_layers(model, 4, 1, 1), schedule::StageMap::loop(4), options),
      testing::Not(testing::HasSubstr("cut at")));
}

}  // namespace
}  // namespace tessera::plan
