// SPDX-License-Identifier: Apache-2.0
// Bubbles of every schedule through the real executor, with stages that sleep; and what cuts inside
// of blocks gain.
#include <gtest/gtest.h>

#include <cstdio>
#include <optional>

#include "mpi/comm/mpi_main.hpp"
#include "mpi/train/sleeping.hpp"
#include "tessera/model_spec/families.hpp"
#include "tessera/parallel/executor.hpp"
#include "tessera/schedule/schedule.hpp"

namespace tessera::test {
namespace {

using schedule::Kind;

struct Measured {
  double bubble = 0;   ///< 1 - sleep / (from the first to the last of any rank)
  double own = 0;      ///< the worst rank's, within its own first and last
  double seconds = 0;  ///< from the first to the last
  double slowest = 0;  ///< what the rank that sleeps most slept
};

/// A pipeline over all ranks whose cells sleep.
class Pipeline {
 public:
  Pipeline(model::Model& model, const plan::StageRanges& ranges, const schedule::StageMap& map,
           std::vector<Nap> naps)
      : naps_(std::move(naps)),
        layout_(mesh::Layout::resolve({map.ranks(), 1, 1, 1, 1}, world().size())),
        mesh_(world(), layout_, comm::Backend::mpi),
        stages_(model, ranges, map, mesh_, options()) {
    add_naps(model, naps_);
    for (const schedule::StageIndex stage : map.stages_of(rank())) {
      const Range cells = ranges[stage];
      for (Nap& nap : std::span(naps_).subspan(static_cast<std::size_t>(cells.begin),
                                               static_cast<std::size_t>(cells.size))) {
        nap.log = &log_;
        nap.gradients = &stages_.at(stage).weight_gradients();
      }
    }
    stages_.initialize(1);
  }

  Measured run(const schedule::ActionLists& lists, int microbatches) {
    parallel::Executor executor(stages_, mesh_);
    const at::Tensor tokens = at::zeros({kTokens}, at::kLong);
    const std::vector<parallel::Microbatch> data(static_cast<std::size_t>(microbatches),
                                                 {tokens, tokens, {}});
    log_ = {};
    stages_.begin_step(microbatches);
    mesh_.control().barrier();
    executor.run(lists[rank()], data, 0, 1.0);
    stages_.finish_gradients();
    stages_.end_step();
    return measured();
  }

 private:
  static constexpr std::int64_t kTokens = 4;
  schedule::PipelineRank rank() const {
    return schedule::PipelineRank(mesh_.coord(mesh::Axis::pp));
  }
  static parallel::StageOptions options() {
    parallel::StageOptions options;
    options.microbatch.seq = kTokens;
    return options;
  }

  Measured measured() {
    const auto over = [&](double value, comm::Op op) {
      return comm::all_reduce_scalar(mesh_.control(), value, op);
    };
    const double span = over(log_.last, comm::Op::max) - over(log_.first, comm::Op::min);
    return {1 - over(log_.slept, comm::Op::sum) / mesh_.layout().world() / span,
            over(1 - log_.slept / (log_.last - log_.first), comm::Op::max), span,
            over(log_.slept, comm::Op::max)};
  }

  std::vector<Nap> naps_;
  NapLog log_;
  mesh::Layout layout_;
  mesh::DeviceMesh mesh_;
  parallel::Stages stages_;
};

/// Stages of one cell that sleeps `seconds` for each of F, I and W.
Measured measure(Kind schedule, int microbatches, double seconds) {
  const auto map = traits_of(schedule).usual_map(world().size());
  model::Model model = empty_model(map.stages());
  plan::StageRanges ranges;
  for (int i = 0; i < map.stages(); ++i) ranges.push_back({i, 1});
  Pipeline pipeline(model, ranges, map,
                    std::vector<Nap>(model.cells.size(), {seconds, seconds, seconds}));
  return pipeline.run(make_schedule(schedule, map, microbatches), microbatches);
}

struct Row {
  Kind schedule;
  double four, eight;  ///< performance.md: p = 4, m = 8 and p = 8, m = 32
};
constexpr Row kTable[] = {{Kind::gpipe, 0.273, 0.179},
                          {Kind::one_f_one_b, 0.273, 0.179},
                          {Kind::eager_one_f_one_b, 0.273, 0.179},
                          {Kind::interleaved, 0.158, 0.099},
                          {Kind::looped_bfs, 0.158, 0.099},
                          {Kind::zb_h1, 0.111, 0.068},
                          {Kind::interleaved_zero_bubble, 0.059, 0.035},
                          {Kind::zbv, 0.059, 0.035},
                          {Kind::dual_pipe_v, 0.111, 0.068}};

TEST(Bubble, EverySchedule) {
  const int p = world().size(), microbatches = p == 4 ? 8 : 32;
  ASSERT_TRUE(p == 4 || p == 8) << "the table has 4 and 8 ranks";
  measure(Kind::one_f_one_b, p, 0.001);
  for (const Row& row : kTable) {
    const double published = p == 4 ? row.four : row.eight;
    const Measured measured = measure(row.schedule, microbatches, 0.05);
    EXPECT_LE(measured.bubble, published + 0.03) << traits_of(row.schedule).name;
    if (row.schedule == Kind::zbv) {
      EXPECT_LE(measured.own, 0.03) << "within a rank's own span";
    }
    if (world().rank() == 0)
      std::printf(
          "bubble %-21s p=%d m=%-2d ours %5.1f %%  table %4.1f %%  within own span %5.1f %%\n",
          std::string(traits_of(row.schedule).name).c_str(), p, microbatches, 100 * measured.bubble,
          100 * published, 100 * measured.own);
  }
}

model::Model five_layers() {
  model::DecoderShape shape;
  shape.dim = 16;
  shape.layers = 5;
  shape.heads = shape.kv_heads = 4;
  shape.head_dim = 4;
  shape.hidden = 48;
  shape.vocab = 32;
  return model::make_decoder(shape, 4, at::kFloat);
}

/// Cells that sleep in proportion to their FLOPs, a block 0.1 s forward and 0.2 s backward.
Measured measure_split(bool balanced) {
  model::Model model = five_layers();
  const std::vector<double> flops = plan::flops_of_cells(model, 4);
  double block = 0;
  for (int i = model.units[1].begin; i < model.units[1].end; ++i)
    block += flops[static_cast<std::size_t>(i)];
  std::vector<Nap> naps;
  for (const double cost : flops)
    naps.push_back({0.1 * cost / block, 0.1 * cost / block, 0.1 * cost / block});
  const auto ranges = balanced ? plan::split_balanced(model, 4, flops, plan::Granularity::cells)
                               : plan::split_by_layers(model, 4, 1, 1);
  const auto map = schedule::StageMap::loop(4);
  Pipeline pipeline(model, ranges, map, naps);
  return pipeline.run(make_schedule(Kind::one_f_one_b, map, 4), 4);
}

TEST(Cuts, FiveLayersOnFourStages) {
  ASSERT_EQ(world().size(), 4) << "four stages";
  const Measured layers = measure_split(false), balanced = measure_split(true);
  EXPECT_LT(balanced.slowest, 0.8 * layers.slowest);
  EXPECT_LT(balanced.seconds, 0.9 * layers.seconds);
  if (world().rank() == 0)
    std::printf(
        "5 layers on 4 stages: slowest stage %.2f s by balanced_sublayer, %.2f s by layers; pass "
        "%.2f s, %.2f s\n",
        balanced.slowest, layers.slowest, balanced.seconds, layers.seconds);
}

}  // namespace
}  // namespace tessera::test
