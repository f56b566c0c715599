// SPDX-License-Identifier: Apache-2.0
// activation_checkpoint.offload: the same bits, and on a GPU less of its memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "mpi/comm/mpi_main.hpp"
#include "mpi/train/place.hpp"
#include "mpi/train/tiny_model.hpp"
#include "simulated_work.hpp"
#include "support/planned.hpp"
#include "tessera/kernels/allocations.hpp"
#include "tessera/train/trainer.hpp"

namespace tessera::test {
namespace {

struct Row {
  std::string mode;  ///< or an option of mode selective
  mesh::Degrees degrees = {1, 1, 1, 1, 1};
  std::string schedule = "1F1B";
  std::string family = {};  ///< of a mixture; none: Llama
  std::string type = "float32";
};

std::ostream& operator<<(std::ostream& to, const Row& row) {
  return to << row.mode << " pp" << row.degrees.pp << " dp" << row.degrees.dp_shard << " tp"
            << row.degrees.tp << " " << row.schedule << " " << row.family << " " << row.type;
}

/// Wide enough that the activations of a step take more than its weights.
constexpr std::int64_t kLayers = 8, kDim = 32, kSequences = 32, kPositions = 16;

config::JobConfig job_of(const Row& row, bool offload) {
  config::JobConfig job = tiny_job("float32");
  job.training.mixed_precision_param = row.type;
  job.training.global_batch_size = kSequences;
  job.training.local_batch_size = kSequences / row.degrees.dp_shard;
  job.parallelism.pipeline_parallel_schedule = row.schedule;
  job.parallelism.pipeline_parallel_microbatch_size = kSequences / 4;
  const bool option = row.mode == "op" || row.mode == "2";
  job.activation_checkpoint.mode = option ? "selective" : row.mode;
  if (option) job.activation_checkpoint.selective_ac_option = row.mode;
  job.activation_checkpoint.offload = offload;
  return job;
}

struct Outcome {
  std::vector<at::Tensor> gradients;
  double loss = 0;
  std::int64_t peak_bytes = 0, host_bytes = 0;
  Copies copies;  ///< of the last step's passes
};

Outcome train(const Row& row, bool offload) {
  const Place place(world());
  const mesh::Layout layout = mesh::Layout::resolve(row.degrees, world().size());
  mesh::DeviceMesh mesh(world(), layout, place.backend);
  model::DecoderShape shape = row.family.empty() ? dense_shape(false, 4) : tiny_shape(row.family);
  shape.layers = kLayers;
  shape.dim = kDim;
  const model::Model model = model::make_decoder(
      shape, kPositions, row.type == "bfloat16" ? at::kBFloat16 : at::kFloat, place.device);
  const UnevenSource source;
  const plan::JobPlan plan = planned(job_of(row, offload), model, layout);
  Outcome outcome;
  const kernels::Allocations allocations(place.device.type());
  train::Trainer trainer(plan, model, mesh, source, place.device);
  trainer.stages().initialize(7);
  trainer.step();
  const Copies before = simulated_copies();
  trainer.compute();
  outcome.copies = simulated_copies() - before;
  for (const auto* param : trainer.stages().params())
    outcome.gradients.push_back(param->gradient.to(at::kCPU).clone());
  outcome.loss = trainer.apply().loss;
  outcome.peak_bytes = allocations.peak();
  outcome.host_bytes = trainer.stages().memory().on_host;
  return outcome;
}

/// TESSERA_ROWS: that many of the first ones.
std::vector<Row> rows_of(int ranks) {
  std::vector<Row> rows;
  if (ranks == 1)
    rows = {{"op"},
            {"full"},
            {"2"},
            {"none"},
            {"none", {1, 1, 1, 1, 1}, "1F1B", "", "bfloat16"},
            {"op", {1, 1, 1, 1, 1}, "1F1B", "qwen3_moe"},
            {"none", {1, 1, 1, 1, 1}, "1F1B", "deepseek_v3"}};
  else
    rows = {{"none", {2, 1, 1, 1, 1}},
            {"full", {1, 1, 2, 1, 1}},
            {"full", {2, 1, 1, 1, 1}},
            {"none", {2, 1, 1, 1, 1}, "GPipe"},
            {"op", {2, 1, 1, 1, 1}, "Interleaved1F1B"},
            {"none", {2, 1, 1, 1, 1}, "ZBVZeroBubble"},
            {"op", {1, 1, 2, 1, 1}, "1F1B", "", "bfloat16"},
            {"op", {1, 1, 1, 1, 2}},
            {"none", {.dp_shard = 2, .ep = 2}, "1F1B", "qwen3_moe"}};
  if (const char* count = std::getenv("TESSERA_ROWS"))
    rows.resize(std::min<std::size_t>(rows.size(), std::stoul(count)));
  return rows;
}

TEST(ActivationOffload, GivesTheSameBitsInLessMemory) {
  const std::vector<Row> rows = rows_of(world().size());
  // The first products allocate cuBLAS's workspace, which stays.
  if (wanted_device() == "cuda") train(rows.front(), false);
  for (const Row& row : rows) {
    SCOPED_TRACE(testing::PrintToString(row));
    const Outcome without = train(row, false), with = train(row, true);
    EXPECT_EQ(with.loss, without.loss);
    ASSERT_EQ(with.gradients.size(), without.gradients.size());
    for (std::size_t i = 0; i < with.gradients.size(); ++i)
      EXPECT_TRUE(at::equal(with.gradients[i], without.gradients[i])) << "parameter " << i;
    if (!on_device()) {
      EXPECT_EQ(with.host_bytes, 0);
      continue;
    }
    EXPECT_LT(with.peak_bytes, without.peak_bytes);
    EXPECT_GE(with.host_bytes, without.peak_bytes - with.peak_bytes);
    const bool whole_blocks = row.mode == "full" && world().size() == 1;
    if (whole_blocks) {
      EXPECT_EQ(with.host_bytes, kLayers * kSequences * kPositions * kDim * 4);
    }
    if (wanted_device() != "sim") continue;  // which counts no copies
    const std::int64_t added = with.copies.asynchronous - without.copies.asynchronous;
    EXPECT_GT(added, 0);
    if (whole_blocks) {
      EXPECT_EQ(added, 2 * kLayers - 1) << "the last block's input does not come back";
    }
    EXPECT_EQ(with.copies.blocking, without.copies.blocking) << "no copy holds its caller";
  }
}

}  // namespace
}  // namespace tessera::test
