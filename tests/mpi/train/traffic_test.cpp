// SPDX-License-Identifier: Apache-2.0
// What the plan predicts of a step's traffic, against what communicators count in a step.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <mutex>
#include <string>

#include "mpi/comm/mpi_main.hpp"
#include "mpi/train/gradient_case.hpp"
#include "mpi/train/spread.hpp"
#include "mpi/train/tiny_model.hpp"
#include "support/planned.hpp"
#include "tessera/comm/hooks.hpp"
#include "tessera/plan/step_traffic.hpp"
#include "tessera/train/trainer.hpp"

namespace tessera::test {
namespace {

using plan::TrafficRow;

/// Counts the calls of all communicators of this rank, by axis and call.
class Counter final : public comm::Hook {
 public:
  void before(const comm::HookedCall& call) override {
    const std::lock_guard lock(mutex_);
    TrafficRow& row = rows_[{std::string(call.axis), call.info.call}];
    ++row.calls;
    for (const comm::Buffer& buffer : call.in)
      row.bytes += static_cast<std::int64_t>(buffer.bytes());
  }
  std::vector<TrafficRow> rows() const {
    std::vector<TrafficRow> all;
    for (const auto& [key, row] : rows_)
      all.push_back({key.first, key.second, row.calls, row.bytes});
    return all;
  }

 private:
  std::mutex mutex_;
  std::map<std::pair<std::string, comm::Call>, TrafficRow> rows_;
};

std::string text_of(const std::vector<TrafficRow>& rows) {
  std::string text;
  for (const TrafficRow& row : rows)
    text += fmt::format("{} {}: {} calls, {} bytes\n", row.axis, comm::name_of(row.call), row.calls,
                        row.bytes);
  return text;
}

using Totals = std::map<std::string, std::pair<std::int64_t, std::int64_t>>;

/// Calls and bytes that the communicators of the mesh have counted themselves, by axis.
Totals totals_of(const mesh::DeviceMesh& mesh) {
  Totals totals;
  mesh.visit([&](const comm::Communicator& each) {
    totals[each.axis()].first += each.traffic().calls;
    totals[each.axis()].second += each.traffic().bytes;
  });
  return totals;
}

Totals totals_of(const std::vector<TrafficRow>& rows) {
  Totals totals;
  for (const TrafficRow& row : rows) {
    totals[row.axis].first += row.calls;
    totals[row.axis].second += row.bytes;
  }
  return totals;
}

model::Model model_for_traffic(const GradientCase& row, model::DecoderShape& shape) {
  if (row.family.empty()) return model_of(row, at::kCPU);
  shape = tiny_shape(row.family);
  if (shape.mixture) shape.mixture->routing.forced_even = row.capacity == 0;
  return model::make_decoder(shape, 16, row.dtype == "float64" ? at::kDouble : at::kFloat,
                             at::kCPU);
}

using Edit = void (*)(config::JobConfig&);

/// The second step of a run counts what was predicted; false where nothing is.
bool expect_predicted(
    const GradientCase& row, Edit edit = [](config::JobConfig&) {}) {
  const mesh::Layout layout = layout_of(row, world().size());
  model::DecoderShape shape;
  const model::Model model = model_for_traffic(row, shape);
  config::JobConfig job = job_of(row);
  edit(job);
  plan::JobPlan plan = planned(job, model, layout);
  plan.model.shape = shape;
  mesh::DeviceMesh mesh(world(), layout, comm::Backend::mpi);
  const plan::StepTraffic predicted = plan::step_traffic(plan, mesh.rank());
  if (!predicted.unknown.empty()) return false;
  const UnevenSource source;
  train::Trainer trainer(plan, model, mesh, source, at::kCPU);
  trainer.stages().initialize(7);
  trainer.step();
  const Totals before = totals_of(mesh);
  const auto counter = std::make_shared<Counter>();
  comm::add_hook(counter);
  trainer.step();
  comm::remove_hook(counter);
  EXPECT_EQ(text_of(predicted.rows), text_of(counter->rows())) << row.name();
  Totals expected = totals_of(predicted.rows);
  for (const auto& [axis, after] : totals_of(mesh)) {
    const auto known = before.find(axis);
    EXPECT_EQ(expected[axis].first, after.first - (known == before.end() ? 0 : known->second.first))
        << row.name() << ", calls of " << axis;
    EXPECT_EQ(expected[axis].second,
              after.second - (known == before.end() ? 0 : known->second.second))
        << row.name() << ", bytes of " << axis;
  }
  return true;
}

/// Of a spread of `count` rows, those that are predicted.
int expect_spread(const std::vector<GradientCase>& rows, std::size_t count) {
  int predicted = 0;
  for (const GradientCase& row : spread_of(rows, count).rows) predicted += expect_predicted(row);
  return predicted;
}

TEST(Traffic, Shards) {
  GradientCase row;
  row.dp = world().size();
  EXPECT_TRUE(expect_predicted(row));
}

/// Blocks of MX are on one rank: the ranks of tp agree on no scale. Sums over copies of heads are
/// not predicted.
TEST(Traffic, Blocks) {
  GradientCase row;
  row.tp = 2;
  row.dp = world().size() / 2;
  row.recipe = "mxfp8_cublas";
  EXPECT_TRUE(expect_predicted(row));
  row.kv_heads = 1;
  EXPECT_FALSE(expect_predicted(row));
}

/// Weights in bytes, and one reduction for all of their scales.
TEST(Traffic, WeightsInBytes) {
  GradientCase row;
  row.recipe = "tensorwise";
  row.gathers_bytes = true;
  for (const char* type : {"float64", "float32", "bfloat16"})
    for (const char* reshard : {"default", "always", "never"})
      for (int pp = 1; pp <= 2; ++pp) {
        row.dtype = type;
        row.reshard = reshard;
        row.pp = pp;
        row.dp = world().size() / pp;
        EXPECT_TRUE(expect_predicted(row));
      }
  row.dtype = "float32";
  row.pp = 1;
  row.dp = world().size();
  EXPECT_TRUE(expect_predicted(
      row, [](config::JobConfig& job) { job.training.enable_cpu_offload = true; }));
}

/// Once to each rank, where choices go round the experts or rows have a fixed number.
TEST(Traffic, TokensThatAreSentOnce) {
  std::vector<GradientCase> rows = sent_once_cases(world().size());
  std::erase_if(rows, [](const GradientCase& row) { return row.capacity == 1; });
  EXPECT_GE(expect_spread(in_types_by_turns(rows), 10), 5);
}

/// Rows have a fixed number, whatever is chosen.
TEST(Traffic, ExpertsWithACapacity) {
  std::vector<GradientCase> rows = capacity_cases(world().size());
  std::erase_if(rows, [](const GradientCase& row) { return row.capacity < 4; });
  EXPECT_GE(expect_spread(in_types_by_turns(rows), 10), 5);
}

/// Weights without gradients, masters in host memory, and sums in another type.
TEST(Traffic, OtherKeys) {
  GradientCase row;
  row.tp = 2;
  row.dp = world().size() / 2;
  row.dtype = "float32";
  row.accumulation = 2;
  EXPECT_TRUE(expect_predicted(row, [](config::JobConfig& job) {
    job.training.freeze = {"tok_embeddings", "layers\\.[0-2]\\..*norm"};
  }));
  EXPECT_TRUE(expect_predicted(
      row, [](config::JobConfig& job) { job.training.enable_cpu_offload = true; }));
  EXPECT_TRUE(expect_predicted(
      row, [](config::JobConfig& job) { job.parallelism.fsdp_prefetch_units = 3; }));
  EXPECT_TRUE(expect_predicted(row, [](config::JobConfig& job) {
    job.training.mixed_precision_param = job.training.mixed_precision_reduce = "bfloat16";
  }));
  for (const char* reduce : {"float32", "bfloat16"}) {
    row.dtype = reduce;
    row.bfloat16_weights = true;
    EXPECT_TRUE(expect_predicted(row, [](config::JobConfig& job) {
      job.training.mixed_precision_reduce = job.training.mixed_precision_param;
    }));
  }
}

TEST(Traffic, RowsOfTheGradientTest) {
  const int n = world().size();
  const int predicted = expect_spread(in_types_by_turns(all_cases(n)), rows_from_environment(50));
  if (n == 8) {
    EXPECT_GE(predicted, 40);
  }
  if (world().rank() == 0) std::printf("traffic: %d rows on %d ranks\n", predicted, n);
}

}  // namespace
}  // namespace tessera::test
