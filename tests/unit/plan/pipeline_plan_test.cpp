// SPDX-License-Identifier: Apache-2.0
#include "tessera/plan/pipeline_plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "support/error_of.hpp"
#include "support/temporary_folder.hpp"
#include "tessera/base/error.hpp"
#include "tessera/model_spec/families.hpp"

namespace tessera::plan {
namespace {

using tessera::test::error_if_any;
using tessera::test::put;
using tessera::test::TemporaryFolder;
using testing::HasSubstr;

class PipelinePlanTest : public testing::Test {
 protected:
  PipelinePlanTest() : model_(model::spec_of({})) {
    job_.training.local_batch_size = 8;
    job_.parallelism.pipeline_parallel_degree = 2;
  }

  PipelinePlan plan(int ranks = 2) {
    const mesh::Layout layout = mesh::Layout::resolve({ranks, 1, 1, 1, 1}, ranks);
    return pipeline_plan_of(job_, model_, stage_map_of(p_, model_, ranks),
                            BatchPlan::make(job_, layout));
  }
  std::string refusal() {
    return error_if_any(ExitCode::usage, [&] { plan(); });
  }

  config::JobConfig job_;
  config::Parallelism& p_ = job_.parallelism;
  model::ModelSpec model_;  // 6 layers
};

TEST_F(PipelinePlanTest, StagesFollowTheSchedule) {
  EXPECT_EQ(plan().map, schedule::StageMap::loop(2));
  p_.pipeline_parallel_schedule = "Interleaved1F1B";
  EXPECT_EQ(plan().map, schedule::StageMap::loop(2, 2));
  p_.pipeline_parallel_schedule = "ZBVZeroBubble";
  EXPECT_EQ(plan().map, schedule::StageMap::v(2));
  EXPECT_EQ(plan(1).map, schedule::StageMap::loop(1));
}

TEST_F(PipelinePlanTest, StagesFollowTheCuts) {
  p_.pipeline_parallel_schedule = "Interleaved1F1B";
  p_.pipeline_parallel_layers_per_stage = 1;  // of 6, and one each for embedding and output
  EXPECT_EQ(plan().map, schedule::StageMap::loop(2, 4));
  p_.pipeline_parallel_split_points = {"layers.1", "layers.2", "layers.3"};
  EXPECT_EQ(plan().map, schedule::StageMap::loop(2, 2));
  p_.pipeline_parallel_stage_map = "1,0,1,0";
  EXPECT_EQ(plan().map, schedule::StageMap::of({1, 0, 1, 0}));
}

bool has_pairs(const PipelinePlan& plan) {
  for (const schedule::ActionList& list : plan.lists)
    for (const schedule::Action& action : list)
      if (action.overlaps_next) return true;
  return false;
}

TEST_F(PipelinePlanTest, PairsHideTheWayToExperts) {
  p_.pipeline_parallel_schedule = "DualPipeV";
  p_.pipeline_parallel_microbatch_size = 1;
  p_.expert_parallel_degree = 2;
  EXPECT_FALSE(has_pairs(plan())) << "the model has no experts";
  model_ = model::spec_of(model::decoder_flavor("mixtral", "debugmodel"));
  EXPECT_TRUE(has_pairs(plan()));
  p_.pipeline_parallel_expert_parallel_overlap = false;
  EXPECT_FALSE(has_pairs(plan()));
  p_.pipeline_parallel_expert_parallel_overlap = true;
  p_.expert_parallel_degree = 1;
  EXPECT_FALSE(has_pairs(plan()));
  p_.expert_parallel_degree = 2;
  p_.pipeline_parallel_schedule = "ZBVZeroBubble";
  EXPECT_FALSE(has_pairs(plan()));
}

TEST_F(PipelinePlanTest, RefusesWhatDoesNotFit) {
  p_.pipeline_parallel_layers_per_stage = 2;
  EXPECT_THAT(
      refusal(),
      HasSubstr(
          "4 pipeline stages do not fit 1F1B on pipeline_parallel_degree 2: it runs 1 stage(s) on "
          "each rank"));
  p_.pipeline_parallel_schedule = "Interleaved1F1B";
  EXPECT_EQ(refusal(), "");
  p_.pipeline_parallel_layers_per_stage = 4;
  EXPECT_THAT(refusal(), HasSubstr("or a multiple of that"));
  p_.pipeline_parallel_layers_per_stage.reset();
  p_.pipeline_parallel_stage_map = "v";
  EXPECT_THAT(refusal(), HasSubstr("stage map \"loop\""));
  p_.pipeline_parallel_stage_map = "0,1,2,0";
  EXPECT_THAT(refusal(), HasSubstr("parallelism.pipeline_parallel_stage_map"));
}

TEST_F(PipelinePlanTest, RefusesFewerMicrobatchesThanTheScheduleNeeds) {
  const auto refused = [&](const char* schedule, std::int64_t rows) {
    p_.pipeline_parallel_schedule = schedule;
    const mesh::Layout layout = mesh::Layout::resolve({4, 1, 1, 1, 1}, 4);
    return error_if_any(ExitCode::usage,
                        [&] { check_microbatches(job_, 4, BatchPlan::make(job_, layout, rows)); });
  };
  EXPECT_EQ(refused("1F1B", 2), "");
  EXPECT_THAT(refused("1F1B", 4), HasSubstr("2 microbatches are fewer than 1F1B needs on 4 "
                                            "pipeline ranks, which is 4; choose smaller"));
  EXPECT_EQ(refused("Interleaved1F1B", 4), "");
  EXPECT_EQ(refused("DualPipeV", 1), "");
  EXPECT_THAT(refused("DualPipeV", 2), HasSubstr("which is 8;"));
}

TEST_F(PipelinePlanTest, ScheduleFromAFile) {
  const TemporaryFolder folder;
  const auto file = folder / "schedule.csv";
  const auto write = [&](const std::string& text) { put(file, text); };
  p_.pipeline_parallel_schedule = "PipelineScheduleSingle";
  p_.pipeline_parallel_schedule_csv = file.string();
  p_.pipeline_parallel_microbatch_size = 4;
  write("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
  EXPECT_EQ(plan().map, schedule::StageMap::loop(2));
  p_.pipeline_parallel_microbatch_size = 2;
  EXPECT_THAT(refusal(), HasSubstr("is for 2 microbatches"));
  p_.pipeline_parallel_microbatch_size = 4;
  write("0F0,0F1,0B0,0B1\n");
  EXPECT_THAT(refusal(), HasSubstr("1 rows"));
  write("0F0,0F1,0B1,0B0\n1F0,1B0,1B1,1F1\n");
  EXPECT_THAT(refusal(), HasSubstr("deadlocks"));
  p_.pipeline_parallel_split_points = {"layers.1", "layers.2"};
  write("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
  EXPECT_THAT(refusal(), HasSubstr("2 stages, and the cuts make 3"));
}

}  // namespace
}  // namespace tessera::plan
