// SPDX-License-Identifier: Apache-2.0
// Pairs of DualPipeV: while tokens of one microbatch travel to experts, another one computes.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "device_values.hpp"
#include "mpi/comm/mpi_main.hpp"
#include "mpi/train/gradient_case.hpp"
#include "mpi/train/place.hpp"
#include "mpi/train/spread.hpp"
#include "mpi/train/tiny_model.hpp"
#include "support/planned.hpp"
#include "tessera/kernels/operation.hpp"
#include "tessera/parallel/tensor_buffer.hpp"
#include "tessera/schedule/csv.hpp"
#include "tessera/schedule/schedule.hpp"
#include "tessera/train/trainer.hpp"

namespace tessera::test {
namespace {

TEST(Gradient, PairsOfMicrobatches) {
  expect_equal_spread(world(), overlapped_cases(world().size()), 10);
}

TEST(Gradient, PairsChangeNoBit) {
  const std::size_t count = world().size() > 4 || on_device() ? 4 : 6;
  for (GradientCase row : spread_of(overlapped_cases(world().size()), count).rows) {
    const std::vector<double> together = three_steps(world(), row);
    row.overlaps = false;
    EXPECT_EQ(three_steps(world(), row), together) << row.name();
  }
}

/// DualPipeV whose backwards are all split, also those of pairs.
std::string split_pairs() {
  const schedule::StageMap map = schedule::StageMap::v(2);
  const schedule::ActionLists whole =
      compute_orders(schedule::Kind::dual_pipe_v, map, 4, schedule::Pairs::together);
  schedule::ActionLists split(whole.size());
  for (const schedule::PipelineRank rank : whole.indexes())
    for (schedule::Action action : whole[rank]) {
      const bool both = action.kind == schedule::ActionKind::backward;
      if (both) action.kind = schedule::ActionKind::input_gradient;
      split[rank].push_back(action);
      action.kind = schedule::ActionKind::weight_gradient;
      if (both) split[rank].push_back(action);
    }
  return to_csv(simulate(split, map));
}

TEST(Gradient, PairsFromAFile) {
  if (world().size() < 4) GTEST_SKIP() << "no ranks of two stages share experts";
  GradientCase row = overlapped_cases(world().size()).front();
  row.accumulation = 1;
  row.schedule = "PipelineScheduleMulti";
  row.csv = comm::broadcast_string(
      world().control(), testing::TempDir() + "tessera-pairs-" + std::to_string(getpid()) + ".csv",
      0);
  if (world().rank() == 0) std::ofstream(row.csv) << split_pairs();
  world().control().barrier();
  expect_equal_gradients(world(), row);
  const std::vector<double> together = three_steps(world(), row);
  row.overlaps = false;
  EXPECT_EQ(three_steps(world(), row), together);
  world().control().barrier();
  if (world().rank() == 0) std::filesystem::remove(row.csv);
}

/// Of what passes: writes a letter when its gradient is computed.
class Written final : public kernels::Operation {
 public:
  Written(std::string& log, char letter) : log_(log), letter_(letter) {}
  std::vector<at::Tensor> forward(kernels::Kept&, std::span<const at::Tensor> inputs) override {
    return {inputs[0].clone()};
  }
  std::vector<at::Tensor> backward(kernels::Kept&, std::vector<at::Tensor> gradients) override {
    log_ += letter_;
    return gradients;
  }

 private:
  std::string& log_;
  char letter_;
};

/// Routers write r and R when they compute forward and backward, experts e and E, shared ones s and
/// S.
void write_order(model::Model& model, std::string& log) {
  for (std::size_t i = 0; i < model.cells.size(); ++i) {
    const model::CellSpec& cell = model.cells[i];
    const bool router = cell.kind == model::CellKind::router,
               shared = cell.source == model::Slot::m;
    if (!router && !shared && cell.kind != model::CellKind::experts) continue;
    const char letter = router ? 'r' : shared ? 's' : 'e';
    const model::Slot result = router   ? model::Slot::scores
                               : shared ? model::Slot::h
                                        : model::Slot::m;
    model.functions[i].forward = [forward = model.functions[i].forward, letter, result, &log](
                                     model::Flow& flow, const model::CellContext& context) {
      log += letter;
      forward(flow, context);
      const auto upper = static_cast<char>(letter - 'a' + 'A');
      flow[result] = kernels::apply(Written(log, upper), {flow[result]});
    };
  }
}

/// What a step of the row does on this rank, in its order.
std::string order_of(const GradientCase& row) {
  const mesh::Layout layout = layout_of(row, world().size());
  const Place place(world(), row.backend, row.over_nccl);
  model::Model model = model_of(row, place.device);
  std::string log;
  write_order(model, log);
  const plan::JobPlan plan = planned(job_of(row), model, layout);
  mesh::DeviceMesh mesh(world(), layout, place.backend, {}, parallel::memory_of(place.device));
  const UnevenSource source;
  train::Trainer trainer(plan, model, mesh, source, place.device);
  trainer.stages().initialize(7);
  trainer.compute();
  return log;
}

/// In forward between router and experts, and in backward between experts and router.
TEST(Gradient, SharedExpertsComputeWhileTokensTravel) {
  if (world().size() == 1) GTEST_SKIP() << "no tokens travel";
  for (const bool once : {false, true}) {
    GradientCase row;
    row.family = "deepseek_v3";
    row.dp = row.ep = world().size();
    row.sends_once = once;
    const std::string order = order_of(row);
    EXPECT_NE(order.find("rse"), std::string::npos) << order;
    EXPECT_NE(order.find("ESR"), std::string::npos) << order;
    EXPECT_EQ(order.find("sr"), std::string::npos) << order;
  }
}

/// On any rank: not all stages have a mixture.
bool takes_turns(const GradientCase& row) {
  std::string order = order_of(row);
  std::erase_if(order, [](char letter) { return letter == 's' || letter == 'S'; });
  const int found = order.find("rEeR") != std::string::npos;
  return comm::all_reduce_scalar(world().control(), std::int64_t{found}, comm::Op::max) > 0;
}

/// The rows of each one's transfer are hidden by a computation of the other.
TEST(Gradient, PairsTakeTurnsWhereTokensTravel) {
  if (world().size() < 4) GTEST_SKIP() << "no ranks of two stages share experts";
  GradientCase row = overlapped_cases(world().size()).front();
  row.capacity = 0;
  for (const bool once : {false, true}) {
    row.sends_once = once;
    row.recompute = once ? "full" : "none";
    row.overlaps = true;
    EXPECT_TRUE(takes_turns(row)) << row.name();
    row.overlaps = false;
    EXPECT_FALSE(takes_turns(row)) << row.name();
  }
}

}  // namespace
}  // namespace tessera::test
