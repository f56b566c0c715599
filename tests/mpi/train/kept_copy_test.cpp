// SPDX-License-Identifier: Apache-2.0
// Weights in bf16 that no gather brings: the optimizer writes them in its sweep, and the next step
// does not cast the masters again. No bit changes, whatever happens between two steps.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "mpi/train/state_fixture.hpp"
#include "simulated_work.hpp"
#include "tessera/kernels/allocations.hpp"
#include "tessera/kernels/torch_internal.hpp"

namespace tessera::test {
namespace {

struct Row {
  std::string name;
  mesh::Degrees degrees;
  std::string reshard = "never";
  bool tied = false, graphs = false;
  std::string family = {};
  std::string freeze = {};
};

config::JobConfig job_of(const Row& row) {
  config::JobConfig job = tiny_job("float32");
  job.training.mixed_precision_param = "bfloat16";
  job.training.global_batch_size = 8;
  job.training.local_batch_size = 4 / row.degrees.dp_replicate;
  if (row.degrees.pp > 1) job.parallelism.pipeline_parallel_microbatch_size = 1;
  job.parallelism.fsdp_reshard_after_forward = row.reshard;
  job.compile.enable = row.graphs;
  if (!row.freeze.empty()) job.training.freeze = {row.freeze};
  return job;
}

class Training : public EvenTraining {
 public:
  explicit Training(const Row& row)
      : EvenTraining(row.degrees, job_of(row), [&row](at::Device device) {
          return row.family.empty() ? tiny_model(row.tied, at::kBFloat16, 4, device)
                                    : tiny_family(row.family, at::kBFloat16, device);
        }) {}

  void free_copies() {
    for (parallel::ShardGroup* group : stages().groups()) group->kept_copy().free();
  }
};

void double_weights(parallel::Stages& stages) {
  const at::NoGradGuard no_grad;
  for (const parallel::ShardGroup* group : stages.groups())
    if (!group->options().home) group->flat_master().mul_(2);
}

struct Outcome {
  std::vector<double> losses;
  std::vector<at::Tensor> weights;
};

/// Steps, and between them all that changes weights. `kept`: else each step casts the masters.
Outcome train(const Row& row, bool kept) {
  const SharedFolder folder;
  Training training(row);
  Outcome outcome;
  const auto step = [&] {
    outcome.losses.push_back(training.trainer().step().loss);
    if (!kept) training.stages().end_step();
  };
  const auto steps = [&](int count) {
    for (int i = 0; i < count; ++i) step();
  };
  steps(3);
  training.save(folder.path());
  steps(2);
  training.load(folder.path());
  if (!kept) training.stages().end_step();
  steps(2);
  training.trainer().compute();
  for (const parallel::ShardedParam* param : training.stages().trained_params())
    param->gradient.fill_(std::numeric_limits<double>::quiet_NaN());
  EXPECT_TRUE(training.trainer().apply().skipped);
  steps(2);
  double_weights(training.stages());
  if (!kept) training.stages().end_step();
  steps(1);
  training.stages().initialize(8);
  if (!kept) training.stages().end_step();
  steps(2);
  for (const parallel::ShardedParam* param : training.stages().params())
    outcome.weights.push_back(param->master.to(at::kCPU).clone());
  return outcome;
}

std::vector<Row> rows() {
  std::vector<Row> rows{
      {"one rank", {1, 1, 1, 1, 1}},
      {.name = "tied", .degrees = {1, 1, 1, 1, 1}, .tied = true},
      {.name = "default policy", .degrees = {1, 1, 1, 1, 1}, .reshard = "default"},
      {.name = "graphs", .degrees = {1, 1, 1, 1, 1}, .graphs = true},
      {.name = "experts", .degrees = {1, 1, 1, 1, 1}, .family = "qwen3_moe"},
      {.name = "frozen", .degrees = {1, 1, 1, 1, 1}, .freeze = "layers.*.attention.*"},
      {"replicas", {1, 2, 1, 1, 1}},
      {"pipeline", {2, 1, 1, 1, 1}, "default", true},
      {"shards", {1, 1, 2, 1, 1}},
      {"tensor parallel", {1, 1, 1, 1, 2}},
  };
  std::erase_if(rows, [](const Row& row) {
    const mesh::Degrees& d = row.degrees;
    return d.pp * d.dp_replicate * d.dp_shard * d.cp * d.tp != world().size() ||
           (row.graphs && test_device().is_cpu());
  });
  return rows;
}

TEST(KeptCopy, ChangesNoBit) {
  for (const Row& row : rows()) {
    SCOPED_TRACE(row.name);
    const Outcome with = train(row, true), without = train(row, false);
    EXPECT_EQ(with.losses, without.losses);
    ASSERT_EQ(with.weights.size(), without.weights.size());
    for (std::size_t i = 0; i < with.weights.size(); ++i)
      EXPECT_TRUE(at::equal(with.weights[i], without.weights[i])) << i;
  }
}

/// With zeros in place of the copies, logits are zeros.
TEST(KeptCopy, IsWhatTheNextStepReads) {
  if (world().size() > 1) GTEST_SKIP() << "one rank";
  Training training({"", {1, 1, 1, 1, 1}});
  std::vector<at::Tensor> copies;
  for (const parallel::ShardedParam* param : training.stages().params())
    copies.push_back(param->storage);
  training.trainer().step();
  for (const at::Tensor& copy : copies) copy.zero_();
  EXPECT_NEAR(training.trainer().step().loss, std::log(48), 1e-6);
  for (const parallel::ShardedParam* param : training.stages().params())
    EXPECT_TRUE(at::equal(param->storage, param->master.to(at::kBFloat16))) << param->spec->fqn;
}

/// Only what is there at a step's peak anyway stays.
TEST(KeptCopy, IsOfUnitsThatAreNotFreed) {
  if (world().size() > 1) GTEST_SKIP() << "one rank";
  for (const auto& [reshard, kept] : {std::pair{"never", 8}, {"default", 1}, {"always", 0}}) {
    SCOPED_TRACE(reshard);
    Training training({"", {1, 1, 1, 1, 1}, reshard});
    training.trainer().step();
    int found = 0;
    for (const parallel::ShardGroup* group : training.stages().groups())
      found += kernels::storage_bytes(group->params().front().storage) > 0 ? 1 : 0;
    EXPECT_EQ(found, kept);
  }
}

/// Of three steps; `kept`: else copies are freed after each.
std::int64_t peak_bytes(const Row& row, bool kept) {
  const kernels::Allocations counted(test_device().type());
  Training training(row);
  for (int step = 0; step < 3; ++step) {
    training.trainer().step();
    if (!kept) training.free_copies();
  }
  return counted.peak();
}

/// Later steps begin with the copies, and need no more memory.
TEST(KeptCopy, AddsNothingToThePeak) {
  for (const Row& row : rows()) {
    // Graphs have a pool of their own, and how long a transfer takes is not known.
    if (row.graphs || row.degrees.pp > 1) continue;
    SCOPED_TRACE(row.name);
    EXPECT_EQ(peak_bytes(row, true), peak_bytes(row, false));
  }
}

/// An export in bf16 is made where the copies were.
TEST(KeptCopy, IsGivenBackForAnExport) {
  if (world().size() > 1) GTEST_SKIP() << "one rank";
  Training with({"", {1, 1, 1, 1, 1}, "never", false, !test_device().is_cpu()}),
      without({"", {1, 1, 1, 1, 1}});
  for (int step = 0; step < 6; ++step) {
    if (step == 3) {
      with.free_copies();
      // As validation does, which is no graph.
      for (parallel::ShardGroup* group : with.stages().groups()) group->finish_unshard();
    }
    EXPECT_EQ(with.trainer().step().loss, without.trainer().step().loss) << step;
  }
  with.free_copies();
  for (const parallel::ShardGroup* group : with.stages().groups())
    EXPECT_EQ(kernels::storage_bytes(group->params().front().storage), 0);
}

/// One launch a unit is left away.
TEST(KeptCopy, IsNotCastAgain) {
  if (world().size() > 1 || wanted_device() != "sim") GTEST_SKIP() << "the simulated GPU counts";
  Training training({"", {1, 1, 1, 1, 1}});
  training.trainer().step();
  const auto copies = [&] {
    const Work before = simulated_work();
    training.trainer().compute();
    Work work = difference(simulated_work(), before);
    training.trainer().apply();
    return work["launch aten::copy_"];
  };
  const std::int64_t kept = copies();
  training.stages().end_step();
  EXPECT_EQ(copies() - kept, 8);
}

}  // namespace
}  // namespace tessera::test
