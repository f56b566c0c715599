// SPDX-License-Identifier: Apache-2.0
// The search finds the best of what it tries, and the smallest change of a job that does not fit.
#include "tessera/planner/search.hpp"

#include <gtest/gtest.h>

#include "tessera/plan/job_plan.hpp"

namespace tessera::planner {
namespace {

config::Reading job(const char* recompute, const char* batch) {
  return config::read_job({"--model.name", "llama3", "--model.flavor", "8B", "--training.seq_len",
                           "8192", "--training.dataset_path", "x", "--training.local_batch_size",
                           batch, "--activation_checkpoint.mode", recompute});
}

Workload work_of(const config::Resolved& job, const Stack& stack) {
  return workload_of(plan::plan_job(job, 8, 0), stack);
}

SearchResult found(const config::Reading& job, const Stack& stack) {
  return search(job.resolved, work_of(job.resolved, stack), load_machine("h100-700w"), stack);
}

TEST(Search, TheBestAreSortedFitAndKeepTheBatch) {
  const Stack stack = load_stack("tessera");
  const config::Reading own = job("full", "1");
  const SearchResult result = found(own, stack);
  ASSERT_EQ(result.best.size(), 5U);
  double last = 0;
  for (const Option& option : result.best) {
    EXPECT_TRUE(option.price.fits);
    EXPECT_GE(option.price.step_seconds, last);
    last = option.price.step_seconds;
    EXPECT_EQ(work_of(option.job, stack).step_tokens(), work_of(own.resolved, stack).step_tokens());
  }
}

TEST(Search, AJobThatDoesNotFitGetsTheSmallestChange) {
  const Stack stack = load_stack("tessera");
  const SearchResult result = found(job("none", "2"), stack);
  ASSERT_TRUE(result.smallest);
  EXPECT_EQ(result.smallest->changes.size(), 1U);
  EXPECT_TRUE(result.smallest->price.fits);
}

TEST(Search, SequencesThatDoNotDivideAreNoVariant) {
  EXPECT_FALSE(changed(job("full", "1").resolved, {.microbatch = 2}, 8, 8));
  EXPECT_TRUE(changed(job("full", "1").resolved, {.tp = 2, .microbatch = 2}, 8, 8));
}

}  // namespace
}  // namespace tessera::planner
