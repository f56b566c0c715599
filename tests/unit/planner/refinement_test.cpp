// SPDX-License-Identifier: Apache-2.0
// A machine whose figures are wrong by known factors, and a run on the true one.
#include "tessera/planner/refinement.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "support/temporary_folder.hpp"
#include "tessera/planner/run_figures.hpp"
#include "unit/planner/planned_job.hpp"

namespace tessera::planner {
namespace {

using tessera::test::put;
using tessera::test::TemporaryFolder;
using testing::HasSubstr;
using testing::Not;

JobCase job_on_gpus() {
  return {"", 8, {"--model.flavor", "8B", "--training.local_batch_size", "2"}};
}

struct TruePlace {
  PlannedJob job;
  Workload work;

  TruePlace() : job(job_on_gpus()), work(job.space.own_work()) {}

  Refinement refined(const std::vector<Correction>& truth) const {
    const Price there = price(work, corrected(job.machine, truth), job.stack);
    return refine(work, job.machine, job.stack, figures_of(there, job.machine));
  }
};

/// Two cores, all rates alike.
Host plain_node() {
  Host node;
  node.processor = "X";
  node.cores = 2;
  node.memory_bytes = 8 * kGiB;
  for (double Host::*value :
       {&Host::copy_bytes_per_second, &Host::f32_peak, &Host::bf16_peak,
        &Host::f32_flops_per_second, &Host::bf16_flops_per_second,
        &Host::f32_operand_bytes_per_second, &Host::bf16_operand_bytes_per_second,
        &Host::attention_forward, &Host::attention_backward, &Host::scores_forward,
        &Host::scores_backward, &Host::rank_bytes_per_second})
    node.*value = 4e10;
  node.kernel_seconds = node.fork_seconds = node.call_seconds = 1e-6;
  return node;
}

/// A step's seconds do not change. What others compute in them is waiting, or a longer pass.
TEST(RunFigures, RanksThatTakeTurnsOnACoreWaitForTheOthers) {
  const PlannedJob job({"",
                        8,
                        {"--model.flavor", "debugmodel", "--training.seq_len", "256",
                         "--parallelism.tensor_parallel_degree", "2"},
                        "h100-700w",
                        0,
                        "tessera-host"});
  const Machine machine = machine_of(plain_node(), 8);
  Price price = planner::price(job.space.own_work(), machine, job.stack);
  const double all = price.forward_seconds + price.backward_seconds + price.optimizer_seconds;
  const auto own_of = [&](double calls) {
    price.calls = calls;
    double waits = 0, own = 0;
    for (const auto& [part, seconds] : figures_of(price, machine).parts)
      (part.starts_with(metrics::kWaitingIn) ? waits : own) += seconds;
    EXPECT_NEAR(own + waits, price.exposed.tp + price.exposed.dp + all, 1e-6 * all);
    return own;
  };
  // Ranks that meet often finish their passes without a break, and wait. The others of a core
  // interrupt long passes.
  EXPECT_GT(price.calls, 50);
  EXPECT_NEAR(own_of(1e12), all / 4, 1e-9 * all);
  EXPECT_NEAR(own_of(all / 4 / 8e-3 - 1), all / 4 + 3 * all / 8, 1e-6 * all) << "a turn each";
  EXPECT_GT(own_of(0), 0.9 * all);
}

TEST(Refinement, OneWrongRateIsFoundAndNoOtherIsTouched) {
  const TruePlace run;
  const Refinement found = run.refined({{Rate::products, 0.6}});
  ASSERT_EQ(found.corrections.size(), 1U);
  EXPECT_EQ(found.corrections.front().rate, Rate::products);
  EXPECT_NEAR(found.corrections.front().factor, 0.6, 0.01);
}

TEST(Refinement, TwoWrongRatesNeedTwoFactors) {
  const TruePlace run;
  const Refinement found = run.refined({{Rate::products, 0.7}, {Rate::links, 0.4}});
  EXPECT_LE(found.corrections.size(), 2U);
  const double truth =
      price(run.work, corrected(run.job.machine, {{Rate::products, 0.7}, {Rate::links, 0.4}}),
            run.job.stack)
          .step_seconds;
  EXPECT_NEAR(found.price.step_seconds / truth, 1, 0.03);
}

TEST(Refinement, AFileThatIsRightStays) {
  EXPECT_TRUE(TruePlace().refined({}).corrections.empty());
}

/// Whose kernels are a hundred times slower: no factor within the bounds would help by 1 %.
TEST(Refinement, WhatNoFactorExplainsIsNotCorrected) {
  const TruePlace run;
  metrics::RunFigures slow =
      figures_of(price(run.work, run.job.machine, run.job.stack), run.job.machine);
  slow.step_seconds *= 1000;
  EXPECT_TRUE(refine(run.work, run.job.machine, run.job.stack, slow).corrections.empty());
}

TEST(Refinement, FactorsAreBounded) {
  const Refinement found = TruePlace().refined({{Rate::products, 0.02}});
  ASSERT_FALSE(found.corrections.empty());
  for (const Correction& one : found.corrections) {
    EXPECT_GE(one.factor, 0.999 / kMostCorrected);
    EXPECT_LE(one.factor, 1.001 * kMostCorrected);
  }
}

/// The text is scaled as the values are: a step costs the same on the machine that is read again.
TEST(Refinement, AFileIsCorrectedWhereItSaysWhatIsWrong) {
  const TemporaryFolder folder;
  const PlannedJob on_gpus(job_on_gpus());
  const PlannedJob on_host({"",
                            1,
                            {"--model.flavor", "debugmodel", "--training.seq_len", "256"},
                            "h100-700w",
                            0,
                            "tessera-host"});
  const Host node = plain_node();
  const std::vector<Correction> corrections{
      {Rate::products, 0.5}, {Rate::memory, 0.25}, {Rate::links, 2}};
  for (const auto& [machine, job] :
       {std::pair{load_machine("h100-700w"), &on_gpus}, std::pair{machine_of(node, 1), &on_host}}) {
    const std::string text = corrected_file(file_text_of(machine), corrections, {"a note"});
    EXPECT_THAT(text, HasSubstr("# a note\n"));
    put(folder / "m.toml", text);
    const Machine again = machine_of((folder / "m.toml").string(), 1),
                  wanted = corrected(machine, corrections);
    EXPECT_NEAR(price(job->space.own_work(), again, job->stack).step_seconds /
                    price(job->space.own_work(), wanted, job->stack).step_seconds,
                1, 2e-3);
    EXPECT_NE(price(job->space.own_work(), again, job->stack).step_seconds,
              price(job->space.own_work(), machine, job->stack).step_seconds);
    EXPECT_DOUBLE_EQ(again.memory_bytes, wanted.memory_bytes);
  }
}

TEST(Refinement, CommentsAndOtherNumbersStay) {
  const std::string text =
      "# 3 GPUs\n[gpu]\nhbm_tb_s = 3.35   # 3.35 of the data sheet\npower_w = 700\n"
      "[attention_tflops]\nfused = [660, 570]\n";
  EXPECT_EQ(corrected_file(text, {{Rate::memory, 0.5}, {Rate::products, 0.1}}, {}),
            "# 3 GPUs\n[gpu]\nhbm_tb_s = 1.675   # 3.35 of the data sheet\npower_w = 700\n"
            "[attention_tflops]\nfused = [66, 57]\n");
}

TEST(Refinement, PartsFollowTheirRates) {
  EXPECT_EQ(rate_of("backward"), Rate::products);
  EXPECT_EQ(rate_of("optimizer"), Rate::memory);
  EXPECT_EQ(rate_of("waiting in pp"), Rate::links);
  EXPECT_FALSE(rate_of("data"));
}

}  // namespace
}  // namespace tessera::planner
