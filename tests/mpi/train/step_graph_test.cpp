// SPDX-License-Identifier: Apache-2.0
// Steps as CUDA graphs change no bit of a training.
#include <dlfcn.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "call_log.hpp"
#include "mpi/comm/mpi_main.hpp"
#include "mpi/train/place.hpp"
#include "mpi/train/tiny_model.hpp"
#include "passes.hpp"
#include "support/planned.hpp"
#include "tessera/comm/failure.hpp"
#include "tessera/parallel/tensor_buffer.hpp"
#include "tessera/train/trainer.hpp"

namespace tessera::test {
namespace {

/// Launches of graphs so far, counted by the simulated GPU.
std::int64_t launched_graphs() {
  using Function = std::string (*)();
  void* const function = dlsym(RTLD_DEFAULT, "_ZN7tessera3sim12work_by_nameB5cxx11Ev");
  if (function == nullptr) return 0;
  std::istringstream lines(reinterpret_cast<Function>(function)());
  for (std::string kind, name, count; lines >> kind >> name >> count;)
    if (name == "graph") return std::stoll(count);
  return 0;
}

struct Row {
  mesh::Degrees degrees;
  std::string type = "float32";
  std::string schedule = "1F1B";
  std::string family = {};     ///< of a mixture; none: Llama
  std::string experts = {};    ///< of quantize.grouped_mm: how they are rounded
  double capacity = 0;         ///< of experts that ranks share
  bool sends_once = false;     ///< a token to each rank
  bool gathers_bytes = false;  ///< linear layers are rounded to float8, before they are gathered
  /// After this many passes of units in step 2, one of the ranks asks the device for a value.
  int asks_after = -1;
  /// In this step (from 0), rows for experts that ranks share do not fit on one of them.
  int overflows_in = -1;
};

struct Outcome {
  std::vector<double> losses, norms, balance;
  std::vector<at::Tensor> weights;
  std::int64_t graphs = 0;
};

/// Ranks that share a GPU take turns of some ms at it, several times for each collective.
int steps() { return wanted_device() == "sim" ? 5 : 3; }

config::JobConfig job_of(const Row& row, bool graphs) {
  config::JobConfig job = tiny_job("float32");
  job.compile.enable = graphs;
  job.training.mixed_precision_param = row.type;
  job.training.global_batch_size = 8;
  // Two passes a step, or two microbatches of a pipeline.
  job.training.local_batch_size = 4 / (row.degrees.dp_shard * row.degrees.dp_replicate);
  if (row.degrees.pp > 1) job.parallelism.pipeline_parallel_microbatch_size = 1;
  job.parallelism.pipeline_parallel_schedule = row.schedule;
  if (!row.experts.empty()) job.model.converters = {"quantize.grouped_mm." + row.experts};
  job.quantize.grouped_mm.float8.fqns = job.quantize.grouped_mm.mx.fqns = {"experts"};
  if (row.capacity > 0) job.parallelism.expert_parallel_capacity_factor = row.capacity;
  if (row.sends_once) job.parallelism.expert_parallel_comm_backend = "deepep";
  if (row.gathers_bytes) {
    job.model.converters = {"quantize.linear.float8"};
    job.quantize.linear.float8.enable_fsdp_float8_all_gather = true;
  }
  return job;
}

model::Model model_of(const Row& row, at::Device device) {
  const at::ScalarType type = row.type == "bfloat16" ? at::kBFloat16 : at::kFloat;
  if (row.gathers_bytes) return even_model(false, type, false, 8, device);
  if (row.family.empty()) return tiny_model(false, type, 4, device);
  model::DecoderShape shape = tiny_shape(row.family);
  shape.dim = shape.mixture->hidden = 64;  // rows that one kernel multiplies for all experts
  shape.head_dim = 8;
  shape.layers = 2;
  return model::make_decoder(shape, 16, type, device);
}

Outcome train(const Row& row, bool graphs, const data::SampleSource& source = EvenSource()) {
  Place place(world());
  const mesh::Layout layout = mesh::Layout::resolve(row.degrees, world().size());
  mesh::DeviceMesh mesh(world(), layout, place.backend);
  const model::Model model = model_of(row, place.device);
  const plan::JobPlan plan = planned(job_of(row, graphs), model, layout);
  train::Trainer trainer(plan, model, mesh, source, place.device);
  trainer.stages().initialize(7);
  int passes = row.asks_after + 1;
  const at::Tensor value = at::ones({1}, place.device);
  if (row.asks_after >= 0 && world().rank() == row.asks_after % world().size())
    trainer.stages().on_high_water([&] {
      if (passes++ == row.asks_after) static_cast<void>(value.item());
    });
  Outcome outcome;
  const std::int64_t before = launched_graphs();
  for (int step = 0; step < steps(); ++step) {
    if (step == 1) passes = 0;
    if (step == row.overflows_in && world().rank() == 1)
      trainer.stages().at(schedule::StageIndex(0)).experts().overflows().add_(1);
    const train::StepOutcome done = trainer.step();
    outcome.losses.push_back(done.loss);
    outcome.norms.push_back(done.grad_norm);
    outcome.balance.push_back(done.balance_loss);
    for (const auto& load : done.loads) outcome.balance.push_back(load.max_over_mean);
  }
  outcome.graphs = launched_graphs() - before;
  for (const auto* param : trainer.stages().params())
    outcome.weights.push_back(param->master.to(at::kCPU).clone());
  return outcome;
}

void expect_same_bits(const Outcome& with, const Outcome& without) {
  EXPECT_EQ(with.losses, without.losses);
  EXPECT_EQ(with.norms, without.norms);
  EXPECT_EQ(with.balance, without.balance);
  ASSERT_EQ(with.weights.size(), without.weights.size());
  for (std::size_t i = 0; i < with.weights.size(); ++i)
    EXPECT_TRUE(at::equal(with.weights[i], without.weights[i])) << i;
}

class StepGraphs : public testing::Test {
 protected:
  void SetUp() override {
    if (wanted_device() == "cpu") GTEST_SKIP() << "the host has no graphs";
  }
  /// Step 1 is issued call by call, and each later one is a graph.
  void expect_graphs(const Row& row) {
    const mesh::Degrees& d = row.degrees;
    if (d.pp * d.dp_replicate * d.dp_shard * d.cp * d.tp != world().size()) return;
    const Outcome with = train(row, true), without = train(row, false);
    expect_same_bits(with, without);
    if (wanted_device() != "sim") return;
    EXPECT_EQ(with.graphs, steps() - 1);
    EXPECT_EQ(without.graphs, 0);
  }
};

TEST_F(StepGraphs, OfOneRankChangeNoBit) {
  expect_graphs({{1, 1, 1, 1, 1}});
  expect_graphs({{1, 1, 1, 1, 1}, "bfloat16"});
}
TEST_F(StepGraphs, OfShardedWeightsChangeNoBit) { expect_graphs({{1, 1, 2, 1, 1}, "bfloat16"}); }
/// A step makes the scales again.
TEST_F(StepGraphs, OfWeightsInBytesChangeNoBit) {
  Row row{{1, 1, 1, 1, 1}, "bfloat16"};
  row.gathers_bytes = true;
  expect_graphs(row);
  row.degrees = {1, 1, 2, 1, 1};
  expect_graphs(row);
}
TEST_F(StepGraphs, OfReplicasChangeNoBit) { expect_graphs({{1, 2, 1, 1, 1}}); }
TEST_F(StepGraphs, OfTensorParallelRanksChangeNoBit) { expect_graphs({{1, 1, 1, 1, 2}}); }
TEST_F(StepGraphs, OfContextParallelRanksChangeNoBit) { expect_graphs({{1, 1, 1, 2, 1}}); }
TEST_F(StepGraphs, OfPipelinesChangeNoBit) {
  expect_graphs({{2, 1, 1, 1, 1}});
  expect_graphs({{2, 1, 1, 1, 1}, "float32", "ZBVZeroBubble"});
}
TEST_F(StepGraphs, OfHybridShardsChangeNoBit) { expect_graphs({{1, 2, 2, 1, 1}, "bfloat16"}); }

/// Each rank has all experts, or a part of each.
TEST_F(StepGraphs, OfMixturesChangeNoBit) {
  for (const char* family : {"qwen3_moe", "deepseek_v3", "gpt_oss"})
    expect_graphs({{1, 1, 1, 1, 1}, "bfloat16", "1F1B", family});
  for (const char* rounded : {"", "float8", "mx"})
    expect_graphs({{1, 1, 2, 1, 1}, "bfloat16", "1F1B", "deepseek_v3", rounded});
  expect_graphs({{2, 1, 1, 1, 1}, "bfloat16", "1F1B", "qwen3_moe"});
  expect_graphs({{1, 1, 1, 1, 2}, "bfloat16", "1F1B", "qwen3_moe"});
}

/// Ranks send each other rows of a fixed number. Where they do not fit, a step is issued again.
TEST_F(StepGraphs, OfExpertsWithACapacityChangeNoBit) {
  if (world().size() != 2) return;
  for (const char* family : {"qwen3_moe", "deepseek_v3", "gpt_oss"}) {
    Row row{{.dp_shard = 2, .ep = 2}, "bfloat16", "1F1B", family};
    row.capacity = 2;
    expect_graphs(row);
    row.sends_once = true;
    expect_graphs(row);
  }
  Row row{{.dp_shard = 2, .ep = 2}, "bfloat16", "1F1B", "qwen3_moe"};
  const Outcome counted = train(row, true);
  EXPECT_EQ(counted.graphs, 0);
  row.capacity = 1;
  testing::internal::CaptureStderr();
  expect_same_bits(train(row, true), counted);
  const std::string said = testing::internal::GetCapturedStderr();
  if (world().rank() == 0) {
    EXPECT_THAT(said, testing::HasSubstr("this step is computed again, and 2 more"));
  }
}

/// A step is computed again, the next one sends as many rows as are chosen, and those that follow
/// are graphs, made anew where there was one before.
TEST_F(StepGraphs, ComeBackAfterRowsThatDidNotFit) {
  if (world().size() != 2) return;
  Row row{{.dp_shard = 2, .ep = 2}, "bfloat16", "1F1B", "qwen3_moe"};
  const Outcome counted = train(row, false);
  row.capacity = 2;
  for (const int step : {0, 2}) {
    row.overflows_in = step;
    const Outcome with = train(row, true);
    expect_same_bits(with, counted);
    if (wanted_device() != "sim") continue;
    EXPECT_EQ(with.graphs, steps() - 2) << "neither the first step nor the one that is counted";
  }
}

/// Wherever a rank finds that a step cannot be captured, all train on, call by call.
TEST_F(StepGraphs, AreGivenUpByAllRanksWhereOneIsRefused) {
  if (wanted_device() != "sim") GTEST_SKIP() << "the device must refuse";
  const std::vector<Row> rows{{{1, 1, 1, 1, 1}, "bfloat16", "1F1B", "qwen3_moe"},
                              {{1, 1, 2, 1, 1}, "bfloat16"},
                              {{2, 1, 1, 1, 1}, "float32", "ZBVZeroBubble"},
                              {{1, 1, 1, 1, 2}},
                              {{1, 2, 2, 1, 1}, "bfloat16"}};
  for (Row row : rows) {
    const mesh::Degrees& d = row.degrees;
    if (d.pp * d.dp_replicate * d.dp_shard * d.cp * d.tp != world().size()) continue;
    const Outcome without = train(row, false);
    for (const int passes : {0, 5, 14}) {
      SCOPED_TRACE(passes);
      row.asks_after = passes;
      testing::internal::CaptureStderr();
      const Outcome with = train(row, true);
      const std::string said = testing::internal::GetCapturedStderr();
      expect_same_bits(with, without);
      EXPECT_EQ(with.graphs, 0);
      if (world().rank() != 0) continue;
      EXPECT_THAT(said, testing::HasSubstr(fmt::format("as rank {} cannot record one: CUDA error",
                                                       passes % world().size())));
    }
  }
}

/// The scale of the loss is a part of the graph.
TEST_F(StepGraphs, AreNotTakenWhereLabelsThatCountVary) {
  const Row row{{1, 1, world().size(), 1, 1}};
  const Outcome with = train(row, true, UnevenSource()),
                without = train(row, false, UnevenSource());
  expect_same_bits(with, without);
  EXPECT_EQ(with.graphs, 0);
}

/// On two ranks: a graph of some calls that add up one tensor.
struct GraphOfSums {
  explicit GraphOfSums(int calls) {
    const std::string why = graph->capture([&] {
      for (int call = 0; call < calls; ++call)
        mesh.along(mesh::Axis::dp_shard).all_reduce(parallel::buffer_of(sum)).wait();
    });
    EXPECT_EQ(why, "");
  }
  bool sum_is(double value) const { return sum.cpu().eq(value).all().item<bool>(); }

  Place place{world()};
  mesh::DeviceMesh mesh{world(), mesh::Layout::resolve({1, 1, 2, 1, 1}, 2), place.backend};
  at::Tensor sum = at::ones({4}, place.device);
  std::unique_ptr<train::StepGraph> graph = train::make_step_graph(place.device);
};

/// A graph that waits for one of another rank is a call that the watchdog may report.
TEST_F(StepGraphs, AreSeenByTheWatchdog) {
  if (world().size() != 2) GTEST_SKIP() << "2 ranks";
  GraphOfSums of(3);
  if (world().rank() == 1) world().control().barrier();
  of.graph->launch();
  if (world().rank() == 0) {
    const comm::CallView last = comm::recent(comm::call_page(), 1).at(0);
    EXPECT_EQ(last.state, comm::CallState::waited_for);
    EXPECT_EQ(comm::title(last.info), "graph of 3 calls");
    world().control().barrier();
  }
  EXPECT_TRUE(of.sum_is(8));
}

/// NCCL's abort waits for graphs with calls of the communicator.
TEST_F(StepGraphs, DoNotHoldUpAnAbort) {
  if (world().size() != 2) GTEST_SKIP() << "2 ranks";
  GraphOfSums of(1);
  of.graph->launch();
  EXPECT_TRUE(of.sum_is(2));
  EXPECT_TRUE(comm::abort_device_communicators("a test", std::chrono::seconds(30)));
  EXPECT_THROW(of.graph->launch(), Error);
}

}  // namespace
}  // namespace tessera::test
