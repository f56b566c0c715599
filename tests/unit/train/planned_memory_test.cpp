// SPDX-License-Identifier: Apache-2.0
// The planner's memory of jobs on GPUs, from formulas, against the memory that the code of a run
// takes for the same job: ranks are rehearsed with shapes alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "tessera/kernels/shapes.hpp"
#include "tessera/planner/memory.hpp"
#include "tessera/planner/price.hpp"
#include "tessera/train/rehearsal.hpp"
#include "unit/planner/planned_job.hpp"

namespace tessera::planner {
namespace {

constexpr double kLimit = 0.05;

using Flags = std::vector<std::string>;

Flags operator+(Flags a, const Flags& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

const Flags k1B{"--model.flavor", "1B", "--training.local_batch_size", "2"},
    k8B{"--model.flavor", "8B"},
    k70B{"--model.flavor",
         "70B",
         "--parallelism.tensor_parallel_degree",
         "8",
         "--training.local_batch_size",
         "4"};
const Flags kKeepAll{"--activation_checkpoint.mode", "none"},
    kFull{"--activation_checkpoint.mode", "full"},
    kOp{"--activation_checkpoint.mode", "selective", "--activation_checkpoint.selective_ac_option",
        "op"},
    kFused{"--training.fused_linear_cross_entropy", "always"},
    kWholeSequences{"--parallelism.disable_sequence_parallel"},
    kWholeLogits{"--parallelism.disable_loss_parallel"},
    kSharded{"--parallelism.fsdp_gradient_accumulation", "sharded"},
    kAsync{"--parallelism.enable_async_tensor_parallel"}, kBfloat16{"--training.dtype", "bfloat16"},
    kFloat8{"--model.converters", "quantize.linear.float8", "--quantize.linear.float8.filter_fqns",
            "output"},
    kBytes{"--quantize.linear.float8.enable_fsdp_float8_all_gather"},
    kCapacity{"--parallelism.expert_parallel_capacity_factor", "2"},
    kOnce{"--parallelism.expert_parallel_comm_backend", "deepep"},
    kKeepsWeights{"--parallelism.fsdp_reshard_after_forward", "never"};

Flags axis(const std::string& name, const char* degree) {
  return {"--parallelism." + name + "_parallel_degree", degree};
}

Flags scheduled(const char* schedule, const char* ranks = "4") {
  return axis("pipeline", ranks) + Flags{"--parallelism.pipeline_parallel_schedule", schedule};
}

Flags pipeline(const char* schedule, const char* ranks = "4", const char* microbatches = "8") {
  return scheduled(schedule, ranks) + Flags{"--training.local_batch_size", microbatches};
}

Flags mixture(const char* family, const char* flavor, const char* experts,
              const char* batch = "4") {
  return Flags{"--model.name",
               family,
               "--model.flavor",
               flavor,
               "--training.seq_len",
               "4096",
               "--training.local_batch_size",
               batch,
               "--debug.moe_force_load_balance"} +
         axis("expert", experts);
}

const JobCase kJobs[] = {
    {"Small", 8, k1B + kKeepAll},
    {"SmallFull", 8, k1B + kFull + kFused},
    {"All", 8, k8B + kKeepAll},
    {"Full", 8, k8B + kFull},
    {"FullBfloat16", 8, k8B + kFull + kBfloat16},
    {"FullBfloat16Moments", 8, k8B + kFull + Flags{"--optimizer.moments_dtype", "bfloat16"}},
    {"OneBfloat16", 1, k1B + kFull + kBfloat16},
    {"StagesBfloat16", 8, k8B + kFull + kBfloat16 + axis("pipeline", "2") + axis("tensor", "4")},
    {"FullFloat8", 8, k8B + kFull + kFloat8},
    {"FullGathersBytes", 8, k8B + kFull + kFloat8 + kBytes},
    {"KeepsFloat8", 8, k8B + kFull + kFloat8 + kKeepsWeights},
    {"KeepsBytes", 8, k8B + kFull + kFloat8 + kKeepsWeights + kBytes},
    {"StagesBytes", 8,
     k8B + kFull + kFloat8 + kBytes + kBfloat16 + axis("pipeline", "2") + axis("tensor", "4")},
    {"FullFused", 8, k8B + kFull + kFused},
    {"ByOperation", 8, k8B + kOp},
    {"Tensor2", 16, k8B + kKeepAll + axis("tensor", "2")},
    {"Tensor2Async", 16, k8B + kKeepAll + axis("tensor", "2") + kAsync},
    {"Tensor8ByOperation", 64, k8B + kOp + axis("tensor", "8")},
    {"WholeSequencesFull", 64, k70B + kFull + kWholeSequences},
    {"WholeSequences", 8, k8B + kOp + axis("tensor", "8") + kWholeSequences},
    {"WholeLogits", 8, k8B + kFull + axis("tensor", "8") + kWholeLogits},
    {"WholeLogitsAll", 8, k8B + kKeepAll + axis("tensor", "8") + kWholeLogits},
    {"Context8", 8, k8B + kFull + axis("context", "8")},
    {"Context8Ring", 8,
     k8B + kFull + axis("context", "8") +
         Flags{"--parallelism.context_parallel_rotate_method", "alltoall"}},
    {"OneSequenceFused", 8, k8B + kFull + kFused + Flags{"--training.local_batch_size", "1"}},
    {"Context2", 16, k8B + kKeepAll + axis("context", "2")},
    {"Pipeline", 32, k8B + kKeepAll + pipeline("1F1B")},
    {"PipelineZbv", 32, k8B + kKeepAll + pipeline("ZBVZeroBubble")},
    {"PipelineSharded", 32, k8B + kFull + pipeline("1F1B") + kSharded},
    {"InterleavedSharded", 32, k8B + kOp + pipeline("Interleaved1F1B") + kSharded},
    {"FullZbh1", 32, k8B + kFull + pipeline("ZBH1")},
    {"ByOperationZbh1", 32, k8B + kOp + pipeline("ZBH1")},
    {"AllZbh1Of8", 64, k8B + kKeepAll + pipeline("ZBH1", "8", "16")},
    {"FullInterleavedZeroBubble", 32, k8B + kFull + pipeline("InterleavedZeroBubble")},
    {"ByOperationInterleavedZeroBubble", 32, k8B + kOp + pipeline("InterleavedZeroBubble")},
    {"AllInterleavedZeroBubble", 32, k8B + kKeepAll + pipeline("InterleavedZeroBubble")},
    {"FullZbvOf8", 64, k8B + kFull + pipeline("ZBVZeroBubble", "8", "16")},
    {"ByOperationZbv", 32, k8B + kOp + pipeline("ZBVZeroBubble")},
    {"FullDualPipeV", 32, k8B + kFull + pipeline("DualPipeV")},
    {"ByOperationDualPipeVOf8", 64, k8B + kOp + pipeline("DualPipeV", "8", "16")},
    {"AllDualPipeV", 32, k8B + kKeepAll + pipeline("DualPipeV")},
    {"FullZbh1Tensor8", 128, k8B + kFull + pipeline("ZBH1", "4") + axis("tensor", "8")},
    {"FullZbh1Async", 32, k8B + kFull + pipeline("ZBH1") + axis("tensor", "2") + kAsync},
    {"FullZbh1Float8", 32, k8B + kFull + pipeline("ZBH1") + kFloat8},
    {"FullZbh1Fused", 32, k8B + kFull + pipeline("ZBH1") + kFused},
    {"FullGpipe", 32, k8B + kFull + pipeline("GPipe")},
    {"GpipeTensor8WholeLogits", 32,
     k8B + kFull + pipeline("GPipe") + axis("tensor", "8") + kWholeLogits},
    {"PipelineOfFew", 32, k8B + kKeepAll + pipeline("1F1B", "4", "4")},
    {"InterleavedOfFew", 32, k8B + kFull + pipeline("Interleaved1F1B", "4", "4")},
    {"Interleaved", 32, k8B + kFull + pipeline("Interleaved1F1B")},
    {"LargeAll", 256, k70B + kKeepAll},
    {"LargeFull", 64, k70B + kFull},
    {"Mixtral", 8, mixture("mixtral", "8x7B", "1")},
    {"MixtralTensor8", 64, mixture("mixtral", "8x7B", "1") + kOp + axis("tensor", "8")},
    {"MixtralTensor8Full", 64, mixture("mixtral", "8x7B", "1") + kFull + axis("tensor", "8")},
    {"MixtralUnsharded", 64,
     mixture("mixtral", "8x7B", "1") + kFull + axis("tensor", "8") +
         Flags{"--parallelism.fsdp_gradient_accumulation", "unsharded"}},
    {"DeepSeekTensor8", 8, mixture("deepseek_v3", "16B", "1") + kOp + axis("tensor", "8")},
    {"DeepSeek", 8, mixture("deepseek_v3", "16B", "8")},
    {"Qwen", 8, mixture("qwen3", "30B-A3B", "8")},
    {"DeepSeekZbh1", 32, mixture("deepseek_v3", "16B", "8", "8") + kFull + scheduled("ZBH1")},
    {"DeepSeekDualPipeV", 32,
     mixture("deepseek_v3", "16B", "8", "8") + kFull + scheduled("DualPipeV")},
    {"QwenZbv", 32, mixture("qwen3", "30B-A3B", "8", "8") + kFull + scheduled("ZBVZeroBubble")},
    {"QwenCapacity", 8, mixture("qwen3", "30B-A3B", "8") + kCapacity},
    {"DeepSeekCapacity", 8, mixture("deepseek_v3", "16B", "8") + kCapacity},
    {"QwenOnce", 8, mixture("qwen3", "30B-A3B", "8") + kOnce},
    {"QwenOnceCapacity", 8, mixture("qwen3", "30B-A3B", "8") + kOnce + kCapacity},
    {"GptOss", 8, mixture("gpt_oss", "20b", "8")},
};

double rehearsed_bytes(const plan::JobPlan& plan) {
  const at::Device device = kernels::shape_device();
  EXPECT_EQ(train::why_not_rehearsed(plan, device), "");
  std::int64_t most = 0;
  for (const mesh::Rank rank : plan.layout.group_of(mesh::Rank(0), {mesh::Axis::pp}))
    most = std::max(most, train::rehearse_memory(plan, rank, device).peak_bytes);
  return static_cast<double>(most);
}

class PlannedMemory : public testing::TestWithParam<JobCase> {};

TEST_P(PlannedMemory, IsThatOfTheCode) {
  const PlannedJob job(GetParam());
  const double planned = memory_of(workload_of(job.plan, job.stack), job.stack).total(),
               rehearsed = rehearsed_bytes(job.plan), error = planned / rehearsed - 1;
  std::printf("%-20s planned %6.1f GiB, rehearsed %6.1f: %+5.1f %%\n", GetParam().name,
              planned / (1 << 30), rehearsed / (1 << 30), 100 * error);
  EXPECT_LE(std::abs(error), kLimit);
}

INSTANTIATE_TEST_SUITE_P(Jobs, PlannedMemory, testing::ValuesIn(kJobs), name_of_case);

}  // namespace
}  // namespace tessera::planner
