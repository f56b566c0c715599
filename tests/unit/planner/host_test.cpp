// SPDX-License-Identifier: Apache-2.0
// Machine files of hosts, and jobs on them: figures of a made-up host are exact.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "support/error_of.hpp"
#include "support/temporary_folder.hpp"
#include "tessera/config/resolve.hpp"
#include "tessera/planner/price.hpp"
#include "tessera/planner/roofline.hpp"
#include "tessera/planner/scaling.hpp"

namespace tessera::planner {
namespace {

using tessera::test::error_of;
using tessera::test::TemporaryFolder;
using testing::AllOf;
using testing::HasSubstr;

/// Round figures, each of its own.
Host made_up() {
  return {.processor = "Made \"up\" 9000",
          .cores = 4,
          .memory_bytes = 16 * kGiB,
          .copy_bytes_per_second = 10e9,
          .thread_rate = 0.75,
          .kernel_seconds = 2e-6,
          .fork_seconds = 3e-6,
          .f32_peak = 200e9,
          .bf16_peak = 400e9,
          .f32_flops_per_second = 100e9,
          .bf16_flops_per_second = 150e9,
          .f32_operand_bytes_per_second = 5e9,
          .bf16_operand_bytes_per_second = 6e9,
          .attention_forward = 50e9,
          .attention_backward = 40e9,
          .scores_forward = 1e9,
          .scores_backward = 0.5e9,
          .rank_bytes_per_second = 4e9,
          .call_seconds = 1e-6,
          .switch_seconds = 4e-5,
          .checkpoint_bytes_per_second = 0.5e9};
}

config::Resolved job_with(const std::vector<std::string>& more = {}, const char* type = "float32") {
  std::vector<std::string> flags{"--model.name", "llama3", "--model.flavor", "debugmodel"};
  flags.insert(flags.end(), {"--training.dataset_path", "x", "--training.seq_len", "256"});
  flags.insert(flags.end(), {"--training.global_batch_size", "64"});
  flags.insert(flags.end(), {"--activation_checkpoint.mode", "none"});
  flags.insert(flags.end(), {"--training.mixed_precision_param", type});
  flags.insert(flags.end(), more.begin(), more.end());
  return config::resolve(flags);
}

Price price_on(const Machine& machine, int ranks, const std::vector<std::string>& more = {},
               const char* type = "float32") {
  const Stack stack = load_stack("tessera-host");
  const plan::JobPlan plan = plan::plan_job(job_with(more, type), ranks, 0);
  return price(workload_of(plan, stack), share_of(machine, ranks), stack);
}

TEST(HostFile, IsReadAsItWasWritten) {
  TemporaryFolder folder;
  const Host host = made_up();
  folder.file("h.toml", machine_file(host, {"Measured by a test", "Not measured: much"}));
  const Machine machine = load_machine((folder / "h.toml").string());
  ASSERT_TRUE(machine.host);
  const Host& read = machine.host->node;
  EXPECT_EQ(read.processor, "Made up 9000");
  EXPECT_EQ(read.cores, 4);
  for (double Host::*value :
       {&Host::memory_bytes, &Host::copy_bytes_per_second, &Host::thread_rate,
        &Host::kernel_seconds, &Host::fork_seconds, &Host::f32_peak, &Host::bf16_peak,
        &Host::f32_flops_per_second, &Host::bf16_flops_per_second,
        &Host::f32_operand_bytes_per_second, &Host::bf16_operand_bytes_per_second,
        &Host::attention_forward, &Host::attention_backward, &Host::scores_forward,
        &Host::scores_backward, &Host::rank_bytes_per_second, &Host::call_seconds,
        &Host::switch_seconds, &Host::checkpoint_bytes_per_second})
    EXPECT_NEAR(read.*value / (host.*value), 1, 1e-12);
}

TEST(HostFile, MistakesAreNamed) {
  TemporaryFolder folder;
  const auto error = [&](const std::string& text) {
    folder.file("h.toml", text);
    return error_of(ExitCode::usage, [&] { load_machine((folder / "h.toml").string()); });
  };
  EXPECT_THAT(error("[host]\ncores = 2\ncopy_gbs = 3\n"),
              AllOf(HasSubstr("h.toml:3"), HasSubstr("copy_gb_s")));
  EXPECT_THAT(error("[host]\ncores = 2\n[link]\nrank_gb_s = 3\n"),
              AllOf(HasSubstr("h.toml:3"), HasSubstr("links")));
  EXPECT_THAT(error("[host]\ncores = 2\n"),
              AllOf(HasSubstr("lacks memory_gib"), HasSubstr("plan calibrate")));
}

TEST(HostFile, ThisHostHasAllFigures) {
  TemporaryFolder folder;
  folder.file("h.toml", machine_file(this_host(), {}));
  EXPECT_GE(load_machine((folder / "h.toml").string()).host->node.cores, 1);
}

TEST(HostShare, RanksShareTheCoresOfTheirNode) {
  const Machine one = machine_of(made_up(), 1), two = share_of(one, 2), eight = share_of(two, 8);
  EXPECT_EQ(one.host->threads, 4);
  EXPECT_DOUBLE_EQ(one.ceiling_of(Format::f32), 300e9);  // 4 x 0.75 x 100
  EXPECT_DOUBLE_EQ(two.ceiling_of(Format::f32), 150e9);
  EXPECT_DOUBLE_EQ(eight.ceiling_of(Format::f32), 100e9);
  EXPECT_DOUBLE_EQ(one.host->crowd, 1);
  EXPECT_DOUBLE_EQ(eight.host->crowd, 2);
  EXPECT_DOUBLE_EQ(eight.memory_bytes, 2 * kGiB);
  const Machine gpu = load_machine("h200");
  EXPECT_EQ(share_of(gpu, 8).memory_bytes, gpu.memory_bytes);
}

TEST(HostPrice, AStepOnOneCoreIsTheSumOfItsParts) {
  Host host = made_up();
  host.cores = 1;
  const Price price = price_on(machine_of(host, 1), 1);
  double sum = 0;
  for (const auto& [name, seconds] : price.seconds) sum += seconds;
  EXPECT_NEAR(price.step_seconds, sum, 1e-9);
  EXPECT_NEAR(price.forward_seconds + price.backward_seconds + price.optimizer_seconds,
              price.step_seconds, 1e-9);
  // 16,384 tokens: 6 FLOPs for each of 6.1 million parameters of products, at 100 GFLOP/s, and more
  // for operands.
  const double products = 6 * 16384 * 6.1e6 / 100e9;
  EXPECT_EQ(price.seconds.front().first, "gemm");
  EXPECT_GT(price.seconds.front().second, products);
  EXPECT_LT(price.seconds.front().second, 1.6 * products);
}

TEST(HostPrice, RanksBeyondTheCoresTakeTurns) {
  const Machine host = machine_of(made_up(), 1);
  const double on_4 = price_on(host, 4).step_seconds, on_8 = price_on(host, 8).step_seconds;
  // Twice the ranks have half of the sequences each, at half the speed; and more communication.
  EXPECT_GT(on_8, on_4);
  EXPECT_LT(on_8, 1.5 * on_4);
  // A pipeline's idle ranks leave their core to others.
  const std::vector<std::string> pipeline{"--parallelism.pipeline_parallel_degree", "2"};
  EXPECT_GT(price_on(host, 4, pipeline).bubble, 1.5 * price_on(host, 8, pipeline).bubble);
}

TEST(HostPrice, WaitingForARanksTurnCosts) {
  Host slow = made_up(), fast = made_up();
  fast.switch_seconds = 0;
  const std::vector<std::string> tensor{"--parallelism.tensor_parallel_degree", "4"};
  const auto exposed = [&](const Host& host, int ranks) {
    return price_on(machine_of(host, 1), ranks, tensor).exposed;
  };
  EXPECT_DOUBLE_EQ(exposed(slow, 4).tp, exposed(fast, 4).tp);  // a core for each rank
  // Six layers with four pairs of calls, of one turn each, on a core that two ranks share.
  const Exposed late = exposed(slow, 8), early = exposed(fast, 8);
  const double microbatches = 64.0 / 2 / 8, turn = 4e-5 * 2;
  EXPECT_NEAR(late.tp - early.tp, microbatches * 6 * 4 * 2 * turn, 1e-9);
  // Weights of six layers, of the embedding and of the output are gathered twice and reduced.
  EXPECT_NEAR(late.dp - early.dp, microbatches * (6 + 2) * 3 * turn, 1e-9);
}

/// Of a step on one core, where a turn takes this long.
Price of_pipeline(double switch_seconds, const char* schedule) {
  Host host = made_up();
  host.cores = 1;
  host.switch_seconds = switch_seconds;
  return price_on(machine_of(host, 1), 2,
                  {"--parallelism.pipeline_parallel_degree", "2",
                   "--parallelism.pipeline_parallel_microbatch_size", "1",
                   "--parallelism.pipeline_parallel_schedule", schedule});
}

TEST(HostPrice, MessagesOfAPipelineTakeTheCoreOfOthers) {
  const double turn = 1e-4, polling = 6e-4;
  // In each of 64 microbatches, each of the two ranks receives one message, or two of four stages
  // that form a V: one rank has both in the middle.
  for (const auto& [schedule, messages] : {std::pair{"1F1B", 64}, {"ZBVZeroBubble", 128}}) {
    const Price at_once = of_pipeline(0, schedule), price = of_pipeline(turn, schedule);
    EXPECT_NEAR((price.step_seconds - at_once.step_seconds) / (2 * messages * turn), 1, 0.02);
    EXPECT_GE(at_once.exposed.pp, 2 * messages * polling) << schedule;
    const double copied = 64e3 * 4 / 4e9;  // 64 Ki elements, at 4 GB/s
    EXPECT_LT(at_once.bubble * at_once.step_seconds, 2 * messages * (polling + 2 * copied));
  }
}

TEST(HostPrice, ReplicasCopyNoShardedWeights) {
  const Machine host = machine_of(made_up(), 1);
  const auto copies = [&](const std::vector<std::string>& flags) {
    for (const auto& [name, seconds] : price_on(host, 4, flags).seconds)
      if (name == "fsdp copies") return seconds;
    return 0.0;
  };
  EXPECT_GT(copies({}), 0);
  EXPECT_EQ(copies({"--parallelism.data_parallel_replicate_degree", "4",
                    "--parallelism.data_parallel_shard_degree", "1"}),
            0);
}

TEST(HostPrice, BytesOfFloat32AreTwiceThoseOfBfloat16) {
  const Machine host = machine_of(made_up(), 1);
  const std::vector<std::string> tensor{"--parallelism.tensor_parallel_degree", "2"};
  const double wide = price_on(host, 2, tensor).exposed.tp,
               low = price_on(host, 2, tensor, "bfloat16").exposed.tp;
  EXPECT_GT(wide, 1.8 * low);
  EXPECT_LT(wide, 2.0 * low);
}

/// Each number of ranks has its own share of the node.
TEST(HostPictures, RanksShareTheNodeAtEachPoint) {
  const Machine host = machine_of(made_up(), 4);
  const Scaling found = scaling(job_with(), 4, host, load_stack("tessera-host"));
  for (const ScalingPoint& point : found.same_batch)
    EXPECT_DOUBLE_EQ(point.price.step_seconds, price_on(host, point.gpus).step_seconds)
        << point.gpus;
  EXPECT_GE(found.same_batch.size(), 4U);
}

TEST(HostPictures, MemoryHasTheRateThatWasMeasured) {
  const Machine host = machine_of(made_up(), 4);
  const Stack stack = load_stack("tessera-host");
  const Workload work = workload_of(plan::plan_job(job_with(), 4, 0), stack);
  EXPECT_DOUBLE_EQ(roofs_of(work, host).memory, 10e9);
}

}  // namespace
}  // namespace tessera::planner
