// SPDX-License-Identifier: Apache-2.0
// Jobs become workloads: what is known exactly is checked exactly, the rest by how it must move.
#include <gtest/gtest.h>

#include <cmath>

#include "tessera/config/resolve.hpp"
#include "tessera/planner/price.hpp"

namespace tessera::planner {
namespace {

using Flags = std::vector<std::string>;

plan::JobPlan job(int gpus, const Flags& more) {
  Flags flags{"--model.name",       "llama3", "--model.flavor",          "8B",
              "--training.seq_len", "8192",   "--training.dataset_path", "x"};
  flags.insert(flags.end(), more.begin(), more.end());
  return plan::plan_job(config::resolve(flags), gpus, 0);
}

Price price_of(int gpus, const Flags& more = {}, const char* machine = "h100-700w") {
  const Stack stack = load_stack("tessera");
  return price(workload_of(job(gpus, more), stack), load_machine(machine), stack);
}

TEST(JobPrice, ParametersAreThoseOfTheModel) {
  for (const auto& [family, flavor] : {std::pair{"llama3", "8B"},
                                       {"llama3", "405B"},
                                       {"qwen3", "0.6B"},
                                       {"deepseek_v3", "671B"}}) {
    const plan::JobPlan plan =
        plan::plan_job(config::resolve({"--model.name", family, "--model.flavor", flavor,
                                        "--training.dataset_path", "x"}),
                       1, 0);
    double stored = 0;
    for (const model::ParamSpec& param : plan.model.spec->params)
      stored += static_cast<double>(element_count(param.global_shape));
    EXPECT_NEAR(architecture_of(plan.model.shape).params() / stored, 1, 2e-3)
        << family << " " << flavor;
  }
}

TEST(JobPrice, WeightsAndMomentsAreSharedByTheirRanks) {
  const Price on_8 = price_of(8), on_16 = price_of(16);
  EXPECT_NEAR(on_8.memory.weights, 8.03e9 * 4 / 8, 2e7);
  EXPECT_DOUBLE_EQ(on_8.memory.optimizer, 2 * on_8.memory.weights);
  EXPECT_DOUBLE_EQ(on_16.memory.weights, on_8.memory.weights / 2);
}

/// 32 blocks of 218 million parameters in bfloat16; more than all of them are never gathered.
TEST(JobPrice, UnitsThatAreGatheredAheadTakeMemory) {
  const auto with = [](const char* ahead) {
    return price_of(8, {"--parallelism.fsdp_prefetch_units", ahead}).memory.gathered;
  };
  EXPECT_DOUBLE_EQ(with("1"), price_of(8).memory.gathered);
  EXPECT_NEAR(with("3") - with("1"), 2 * 2 * 218.1e6, 1e6);
  EXPECT_DOUBLE_EQ(with("100"), with("32"));
}

/// Of 32 blocks, two are left. The copies of inputs are hidden, and those of all activations are
/// not: 35 bytes for each element of a block's input, at 55 GB/s.
TEST(JobPrice, OffloadedActivationsAreOnTheHost) {
  const auto in_mode = [](const char* mode, const char* offload) {
    return price_of(
        8, {"--activation_checkpoint.mode", mode, "--activation_checkpoint.offload", offload});
  };
  for (const char* mode : {"none", "full"}) {
    const Price kept = in_mode(mode, "false"), away = in_mode(mode, "true");
    EXPECT_DOUBLE_EQ(away.memory.activations, kept.memory.activations / 16) << mode;
    EXPECT_DOUBLE_EQ(away.memory.on_host, kept.memory.activations * 15 / 16) << mode;
    EXPECT_EQ(kept.memory.on_host, 0);
    EXPECT_DOUBLE_EQ(kept.memory.total() - away.memory.total(), away.memory.on_host) << mode;
  }
  const double inputs =
                   in_mode("full", "true").step_seconds / in_mode("full", "false").step_seconds,
               all = in_mode("none", "true").step_seconds / in_mode("none", "false").step_seconds;
  EXPECT_GT(inputs, 1);
  EXPECT_LT(inputs, 1.01);
  EXPECT_GT(all, 1.01);
}

TEST(JobPrice, RecomputationTakesTimeAndSparesMemory) {
  const Price kept = price_of(8, {"--activation_checkpoint.mode", "none"});
  const Price made_again = price_of(8, {"--activation_checkpoint.mode", "full"});
  EXPECT_LT(made_again.memory.activations, kept.memory.activations / 5);
  EXPECT_GT(made_again.step_seconds, 1.15 * kept.step_seconds);
  EXPECT_LT(made_again.step_seconds, 1.40 * kept.step_seconds);
}

/// 8 x 8192 tokens: a sixteenth of the logits, and the weight's gradient in float32 and bfloat16.
TEST(JobPrice, AFusedLossSparesLogits) {
  const auto with = [](const char* how) {
    return price_of(8, {"--training.fused_linear_cross_entropy", how}).memory.loss;
  };
  const double vocab = 128256;
  EXPECT_DOUBLE_EQ(with("never"), 2 * 8 * 8192 * vocab);  // in bfloat16, once
  EXPECT_DOUBLE_EQ(with("always"), vocab * (2 * 4096 + 6 * 4096));
  EXPECT_DOUBLE_EQ(with("auto"), with("always"));
}

TEST(JobPrice, APipelinesBubbleShrinksWithItsMicrobatches) {
  const Flags base{"--parallelism.pipeline_parallel_degree", "4", "--training.local_batch_size"};
  const auto with = [&](const char* batch) {
    Flags flags = base;
    flags.emplace_back(batch);
    return price_of(8, flags);
  };
  const Price few = with("4"), many = with("32");
  EXPECT_GT(few.bubble, 0.3);
  EXPECT_LT(many.bubble, few.bubble / 2);
  EXPECT_GT(many.tokens_per_second_per_gpu, few.tokens_per_second_per_gpu);
  // 1F1B keeps as many microbatches as there are ranks.
  EXPECT_DOUBLE_EQ(many.memory.activations, with("8").memory.activations);
  // No forward comes after the first gradients.
  EXPECT_LT(few.memory.total(), many.memory.total());
}

TEST(JobPrice, TensorParallelismAcrossNodesIsSlower) {
  const auto with = [](const char* degree) {
    return price_of(16, {"--parallelism.tensor_parallel_degree", degree}).exposed.tp;
  };
  EXPECT_EQ(with("1"), 0);
  EXPECT_GT(with("16"), with("8"));
}

/// A ring of 8,192 nodes would take longer than a step; a tree has 13 levels.
TEST(JobPrice, ReplicasOfManyNodesAreSummedAlongATree) {
  const auto with = [](int gpus) {
    return price_of(gpus, {"--parallelism.data_parallel_shard_degree", "8",
                           "--parallelism.data_parallel_replicate_degree", std::to_string(gpus / 8),
                           "--activation_checkpoint.mode", "full"})
        .tokens_per_second_per_gpu;
  };
  EXPECT_GT(with(65536), 0.95 * with(512));
}

/// Seconds of an axis on nodes of 8 GPUs to those of one NVLink domain.
double slower_with_nodes_of_8(int gpus, const Flags& flags, double Exposed::*axis) {
  const Stack stack = load_stack("tessera");
  const Workload work = workload_of(job(gpus, flags), stack);
  Machine machine = load_machine("h100-700w");
  const double nodes = price(work, machine, stack).exposed.*axis;
  machine.nvlink_domain = gpus;
  return nodes / (price(work, machine, stack).exposed.*axis);
}

TEST(JobPrice, GroupsOfSeveralNodesSendOverTheNetwork) {
  for (const char* rotation : {"allgather", "alltoall"}) {
    const Flags across{"--parallelism.context_parallel_rotate_method", rotation,
                       "--parallelism.context_parallel_degree"};
    const auto with = [&](const char* degree) {
      Flags flags = across;
      flags.emplace_back(degree);
      return slower_with_nodes_of_8(32, flags, &Exposed::cp);
    };
    EXPECT_EQ(with("8"), 1) << rotation;
    // A gather enters a node over all of its cards, a message of the ring over one.
    EXPECT_GT(with("32"), rotation == std::string("alltoall") ? 1.5 : 1) << rotation;
  }
  const Flags stages{"--parallelism.pipeline_parallel_degree", "4", "--training.local_batch_size",
                     "8"};
  EXPECT_EQ(slower_with_nodes_of_8(8, stages, &Exposed::pp), 1);
  EXPECT_GT(slower_with_nodes_of_8(16, stages, &Exposed::pp), 1);
}

TEST(JobPrice, KeysAreSentAsTheJobSays) {
  const auto with = [](const char* rotation) {
    return price_of(32, {"--parallelism.context_parallel_degree", "8",
                         "--parallelism.context_parallel_rotate_method", rotation})
        .exposed.cp;
  };
  EXPECT_NE(with("allgather"), with("alltoall"));
}

TEST(JobPrice, RangesInOrderWaitForTheLastRank) {
  const Stack stack = load_stack("tessera");
  const auto attention = [&](const char* balancer, std::int64_t window) {
    Workload work = workload_of(job(32, {"--parallelism.context_parallel_degree", "4",
                                         "--parallelism.context_parallel_load_balancer", balancer}),
                                stack);
    work.model.window = window;
    for (const auto& [name, seconds] : price(work, load_machine("h100-700w"), stack).seconds)
      if (name == "attention") return seconds;
    return 0.0;
  };
  // In halves of blocks of scores, the last of 4 ranks computes 7, and the mean rank 4.
  const double whole = attention("none", 0) / attention("headtail", 0);
  EXPECT_NEAR(whole, 7.0 / 4, 0.01);
  // Half of the layers have a window: those see as many keys on all ranks but the first.
  const double half = attention("none", 128) / attention("headtail", 128);
  EXPECT_GT(half, 1.6);
  EXPECT_LT(half, whole);
}

TEST(JobPrice, WholeLogitsAndSequencesTakeTime) {
  const auto with = [](Flags more) {
    more.insert(more.end(), {"--parallelism.tensor_parallel_degree", "8"});
    return price_of(8, more);
  };
  EXPECT_GT(with({"--parallelism.disable_loss_parallel"}).exposed.tp, with({}).exposed.tp);
  EXPECT_GT(with({"--parallelism.disable_sequence_parallel"}).step_seconds, with({}).step_seconds);
}

TEST(JobPrice, AsynchronousTensorParallelismSparesWaitingWhereItActs) {
  const auto with = [](Flags more) {
    more.insert(more.end(), {"--parallelism.tensor_parallel_degree", "4"});
    return price_of(8, more).exposed.tp;
  };
  const Flags on{"--parallelism.enable_async_tensor_parallel"}, same_bits{"--debug.deterministic"},
      low{"--model.converters", "quantize.linear.float8"};
  const auto both = [](Flags a, const Flags& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  };
  EXPECT_LT(with(on), 0.9 * with({}));
  EXPECT_DOUBLE_EQ(with(same_bits), with({}));  // the same cuts, one after the other
  EXPECT_DOUBLE_EQ(with(both(on, same_bits)), with(on));
  EXPECT_DOUBLE_EQ(with(both(on, low)), with(low));
}

TEST(JobPrice, EachMachineAndStackHaveAPrice) {
  for (const std::string& name : machine_names())
    for (const std::string& stack_name : stack_names()) {
      const Stack stack = load_stack(stack_name);
      const Price one = price(workload_of(job(8, {}), stack), load_machine(name), stack);
      EXPECT_TRUE(std::isfinite(one.step_seconds)) << name << " " << stack_name;
      EXPECT_GT(one.step_seconds, 0) << name << " " << stack_name;
      EXPECT_GT(one.tokens_per_second_per_gpu, 0) << name << " " << stack_name;
      EXPECT_GT(one.memory.total(), 0) << name << " " << stack_name;
    }
}

TEST(JobPrice, Float8ProductsAreFaster) {
  const Flags low{"--model.converters", "quantize.linear.float8"};
  EXPECT_GT(price_of(8, low).tokens_per_second_per_gpu,
            1.1 * price_of(8).tokens_per_second_per_gpu);
  EXPECT_THROW(price_of(8, low, "a100-80gb"), Error);
  EXPECT_THROW(price_of(8, low, "mi250x"), Error);
}

/// Of the rest of a step.
double waiting_share(const Price& price) {
  double waiting = 0, optimizer = 0;
  for (const auto& [name, seconds] : price.seconds) {
    if (name == "waiting") waiting = seconds;
    if (name == "optimizer") optimizer = seconds;
  }
  return waiting / (price.step_seconds - waiting - optimizer);
}

TEST(JobPrice, WhoMeetsInEachMicrobatchWaitsForTheSlowest) {
  const auto with = [&](Flags more, const char* local = "1") {
    more.insert(more.end(),
                {"--training.global_batch_size", "64", "--training.local_batch_size", local});
    return waiting_share(price_of(8, more));
  };
  const double sharded = with({});
  EXPECT_DOUBLE_EQ(with({"--parallelism.tensor_parallel_degree", "8"}), sharded);
  EXPECT_DOUBLE_EQ(with({"--parallelism.context_parallel_degree", "8"}), sharded);
  EXPECT_LT(with({"--parallelism.fsdp_reshard_after_forward", "never"}), 0.5 * sharded);
  const double pipelined = with({"--parallelism.pipeline_parallel_degree", "8",
                                 "--parallelism.pipeline_parallel_microbatch_size", "1"},
                                "64");
  EXPECT_LT(pipelined, sharded);
  EXPECT_GT(pipelined, 0.5 * sharded);
}

TEST(JobPrice, WhatDoesNotFitIsSaid) {
  EXPECT_TRUE(price_of(8, {"--training.local_batch_size", "1"}).fits);
  EXPECT_FALSE(price_of(1, {"--training.local_batch_size", "1"}).fits);
  EXPECT_TRUE(price_of(1, {"--activation_checkpoint.mode", "full"}, "b300").fits);
}

/// Some of the exchange of tokens is hidden in pairs, and the pipeline waits a little longer.
TEST(JobPrice, PairsHideTheWayToExperts) {
  const auto price_with = [](const char* overlap) {
    const config::Resolved wanted = config::resolve(
        {"--model.name", "qwen3", "--model.flavor", "30B-A3B", "--training.dataset_path", "x",
         "--training.local_batch_size", "32", "--parallelism.pipeline_parallel_degree", "4",
         "--parallelism.pipeline_parallel_schedule", "DualPipeV",
         "--parallelism.expert_parallel_degree", "16",
         "--parallelism.pipeline_parallel_expert_parallel_overlap", overlap});
    const Stack stack = load_stack("tessera");
    return price(workload_of(plan::plan_job(wanted, 64, 0), stack), load_machine("h100-700w"),
                 stack);
  };
  const Price apart = price_with("false"), pairs = price_with("true");
  EXPECT_LT(pairs.step_seconds, 0.95 * apart.step_seconds);
  EXPECT_LT(pairs.exposed.ep, 0.9 * apart.exposed.ep);
  EXPECT_GT(pairs.exposed.ep, 0.2 * apart.exposed.ep) << "it takes multiprocessors";
  EXPECT_GT(pairs.bubble, apart.bubble);
  double sum = 0;
  for (const auto& [name, seconds] : pairs.seconds) sum += seconds;
  EXPECT_NEAR(sum, pairs.step_seconds, 1e-6 * sum);
}

}  // namespace
}  // namespace tessera::planner
