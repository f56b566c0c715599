// SPDX-License-Identifier: Apache-2.0
// Forty planted jobs that `train` refuses, found without MPI, ranks or files; twelve of them have
// several problems.
#include "tessera/plan/job_plan.hpp"

#include <gmock/gmock.h>

#include <ctime>

#include "slowdown.hpp"
#include "unit/config/config_files.hpp"

namespace tessera::plan {
namespace {

using config::test::JobFile;
using testing::HasSubstr;

struct Planted {
  const char* file;  ///< the job, from its line 1
  int ranks;
  /// Each begins a problem: "3: seq_len" stands in line 3, "--flag: text" on the command line,
  /// "text" nowhere.
  std::vector<std::string> problems;
  std::vector<std::string> flags = {};
};

const std::vector<Planted>& planted() {
  static const std::vector<Planted> jobs{
      // One problem each: the mesh,
      {"[parallelism]\ntensor_parallel_degree = 3\n[training]\nseq_len = 96",
       8,
       {"2: tp 3 does not divide 8 ranks"}},
      {"[parallelism]\ntensor_parallel_degree = 2", 1, {"2: tp 2 does not divide 1 rank"}},
      {"[parallelism]\npipeline_parallel_degree = 2", 3, {"2: pp 2 does not divide 3 ranks"}},
      {"[parallelism]\ndata_parallel_shard_degree = 4", 8, {"2: dp_shard 4 does not make 8 ranks"}},
      {"[parallelism]\nexpert_parallel_degree = 3\n[model]\nname = 'mixtral'",
       8,
       {"2: expert_parallel_degree 3"}},
      {"",
       6,
       {"--parallelism.context_parallel_degree: cp 4 does not divide 6"},
       {"--parallelism.context_parallel_degree", "4"}},
      // what the model cannot be cut into,
      {"[parallelism]\ntensor_parallel_degree = 32\n[training]\nlocal_batch_size = 1",
       32,
       {"2: attention heads 16"}},
      {"[parallelism]\nexpert_parallel_degree = 2", 2, {"2: llama3 debugmodel has no experts"}},
      {"[model]\nname = 'mixtral'\n[parallelism]\nexpert_parallel_degree = 16",
       16,
       {"4: experts 8 cannot be shared"}},
      {"[model]\nmoe_aux_loss_coeff = 0.1", 1, {"2: llama3 debugmodel has no mixture of experts"}},
      {"[model]\nhf_config = '/no/such/config.json'", 1, {"2: cannot open /no/such/config.json"}},
      {"[training]\nfreeze = ['layers.77']",
       1,
       {"2: training.freeze: \"layers.77\" matches nothing"}},
      {"[checkpoint]\nexclude_from_loading = ['embedings']",
       1,
       {"2: checkpoint.exclude_from_loading"}},
      {"[[parallelism.reshard_rules]]\nmatch = 'blocks'\npolicy = 'never'",
       1,
       {"1: parallelism.reshard_rules: \"blocks\""}},
      {"[parallelism]\nfsdp_reshard_after_forward = 3",
       8,
       {"2: parallelism.fsdp_reshard_after_forward 3"}},
      // batch and sequence,
      {"[training]\nglobal_batch_size = 24", 4, {"2: global_batch_size 24 is not a multiple of"}},
      {"[training]\nseq_len = 100\n[parallelism]\ncontext_parallel_degree = 8",
       8,
       {"2: seq_len 100 is not a multiple of 16"}},
      {"[training]\nseq_len = 36\n[parallelism]\ncontext_parallel_degree = "
       "-1\ndata_parallel_shard_degree = 1",
       8,
       {"2: seq_len 36 is not a multiple of 16"}},
      {"[training]\nlocal_batch_size = 1\nseq_len = 9\n[parallelism]\ntensor_parallel_degree = "
       "-1\ndata_parallel_shard_degree = 1",
       2,
       {"3: seq_len 9 is not a multiple of 2"}},
      {"[validation]\nenable = true\ndataset_path = 'x'\nlocal_batch_size = 1\nseq_len = "
       "9\n[training]\nseq_len = 9\n"
       "[parallelism]\ntensor_parallel_degree = -1\ndata_parallel_shard_degree = 1",
       2,
       {"7: seq_len 9 is not a multiple of 2"}},
      // the pipeline,
      {"[training]\nlocal_batch_size = 2\n[parallelism]\npipeline_parallel_degree = 4",
       4,
       {"2: 2 microbatches are fewer"}},
      {"[parallelism]\npipeline_parallel_degree = 16\n[training]\nlocal_batch_size = 16",
       16,
       {"2: 16 pipeline stages are more"}},
      {"[parallelism]\npipeline_parallel_degree = 2\npipeline_parallel_layers_per_stage = 2",
       2,
       {"3: 4 pipeline stages"}},
      {"[parallelism]\npipeline_parallel_degree = 2\npipeline_parallel_split_points = ['layer.77']",
       2,
       {"3: parallelism.pipeline_parallel_split_points: \"layer.77\""}},
      {"[parallelism]\npipeline_parallel_degree = 2\npipeline_parallel_stage_map = '0,2'",
       2,
       {"3: parallelism.pipeline_parallel_stage_map"}},
      {"[debug]\ninject_faults = ['3:nan:8']",
       8,
       {"2: debug.inject_faults: '3:nan:8' is for rank 8 of 8"}},
      // what Tessera does not do.
      {"[fault_tolerance]\nenable = true",
       1,
       {"2: fault_tolerance.enable = true is not supported"}},
      {"[model]\nname = 'llama4'", 1, {"2: model.name = \"llama4\" is not supported"}},
      // Several each.
      {"[parallelism]\ntensor_parallel_degree = 3\n[training]\nseq_len = 100\nglobal_batch_size = "
       "12",
       8,
       {"2: tp 3 does not divide 8", "4: seq_len 100 is not a multiple of 3",
        "5: global_batch_size 12 is not a multiple"}},
      {"[training]\nstepz = 3\n[parallelism]\npipeline_parallel_degree = 2",
       3,
       {"2: unknown key 'training.stepz'", "4: pp 2 does not divide"}},
      {"[training]\nfreeze = ['a77', 'b77']\n[checkpoint]\nexclude_from_loading = ['c77']",
       1,
       {"2: training.freeze: \"a77\"", "2: training.freeze: \"b77\"", "4: checkpoint.exclude"}},
      {"[optimizer]\nearly_step_in_backward = true\n[checkpoint]\nkeep_latest_k = 1",
       1,
       {"2: optimizer.early_step_in_backward", "4: keep_latest_k"}},
      {"[training]\nglobal_batch_size = 20\nseq_len = 36\n[parallelism]\ncontext_parallel_degree = "
       "-1\ndata_parallel_shard_degree = 1",
       8,
       {"2: global_batch_size 20", "3: seq_len 36"}},
      {"[model]\nmoe_z_loss_coeff = 1e-3\n[parallelism]\ndata_parallel_shard_degree = 3",
       8,
       {"2: llama3 debugmodel has no mixture", "4: dp_shard 3 does not make 8"}},
      {"[model]\nflavor = '9B'\n[optimizer]\nlr = 'fast'\n[parallelism]\ntensor_parallel_degree = "
       "5\n[training]\nseq_len = 2000",
       8,
       {"2: model.flavor \"9B\"", "4: optimizer.lr must be a number", "6: tp 5 does not divide 8"}},
      {"[parallelism]\npipeline_parallel_degree = 4\npipeline_parallel_split_points = "
       "['layers.2']\nfsdp_reshard_after_forward = 3\n[training]\nlocal_batch_size = 3",
       16,
       {"3: 2 pipeline stages do not fit 1F1B", "4: parallelism.fsdp_reshard_after_forward 3",
        "6: 3 microbatches are fewer"}},
      {"[parallelism]\ntensor_parallel_degree = 32\nexpert_parallel_degree = 2\n[training]\nfreeze "
       "= ['x9']",
       32,
       {"2: attention heads 16", "3: llama3 debugmodel has no experts", "5: training.freeze"}},
      {"[memory_estimation]\nenable = true\n[debug]\ninject_faults = "
       "['x']\n[training]\nglobal_batch_size = 12",
       1,
       {"2: memory_estimation.enable", "4: debug.inject_faults: 'x'", "6: global_batch_size 12"}},
      {"[model]\nname = 'mixtral'\n[parallelism]\nexpert_parallel_degree = 3\n",
       8,
       {"4: expert_parallel_degree 3", "--debug.inject_faults: debug.inject_faults"},
       {"--debug.inject_faults", "1:die:9"}},
      {"[validation]\nenable = true\n[parallelism]\ncontext_parallel_load_balancer = "
       "'ptrr'\ncontext_parallel_degree = "
       "2",
       4,
       {"2: validation.enable = true has no data",
        "4: parallelism.context_parallel_load_balancer"}}};
  return jobs;
}

/// The problems of a job, one a line as they are printed, in their order.
std::vector<std::string> found(const Planted& job, const JobFile& file, Planner& planner) {
  std::vector<std::string> args{file.path(), "--training.dataset_path", "x"};
  args.insert(args.end(), job.flags.begin(), job.flags.end());
  config::Reading reading = config::read_job(args);
  planner.plan(reading, job.ranks, 0);
  std::vector<std::string> lines;
  for (const config::Problem& problem : reading.problems)
    lines.push_back(config::message_of({problem}));
  EXPECT_EQ(config::code_of(reading.problems), ExitCode::usage);
  return lines;
}

/// "3: seq_len" -> matches "FILE:3:COLUMN: seq_len...".
testing::Matcher<std::string> begins(const std::string& expected, const JobFile& file) {
  const bool in_file = expected.find_first_not_of("0123456789") == expected.find(": ");
  if (!in_file) return testing::StartsWith(expected);
  const std::size_t colon = expected.find(": ");
  return testing::AllOf(testing::StartsWith(file.at(std::stoi(expected))),
                        HasSubstr(expected.substr(colon)));
}

TEST(Planner, FortyPlantedJobsAreRefused) {
  Planner planner;
  int several = 0;
  ASSERT_EQ(planted().size(), 40u);
  for (const Planted& job : planted()) {
    const JobFile file(job.file);
    SCOPED_TRACE(job.file);
    std::vector<testing::Matcher<std::string>> expected;
    for (const std::string& problem : job.problems) expected.push_back(begins(problem, file));
    EXPECT_THAT(found(job, file, planner), testing::UnorderedElementsAreArray(expected));
    several += job.problems.size() > 1;
  }
  EXPECT_EQ(several, 12);
}

TEST(Planner, TakesAGoodJobOnManyMeshes) {
  Planner planner;
  for (const auto& [ranks, flags] : std::vector<std::pair<int, std::vector<std::string>>>{
           {1, {}},
           {8,
            {"--parallelism.tensor_parallel_degree", "2", "--parallelism.pipeline_parallel_degree",
             "2"}},
           {16, {"--model.flavor", "405B", "--parallelism.tensor_parallel_degree", "8"}},
           {0, {"--model.name", "mixtral", "--parallelism.expert_parallel_degree", "8"}}}) {
    std::vector<std::string> args{"--training.dataset_path", "x"};
    args.insert(args.end(), flags.begin(), flags.end());
    config::Reading job = config::read_job(args);
    planner.plan(job, ranks, 0);
    EXPECT_EQ(message_of(job.problems), "0 problems in the configuration")
        << testing::PrintToString(args);
  }
}

/// Each file has one mistake and another key, which contradicts what the mistake leaves in the
/// place of its key.
TEST(Planner, SaysNothingOfWhatFollowsFromAMisreadKey) {
  Planner planner;
  for (const auto& [text, ranks] : std::vector<std::pair<std::string, int>>{
           {"[training]\nlocal_batch_size = 2\nglobal_batch_size = "
            "'8'\n[parallelism]\npipeline_parallel_degree = 4",
            4},
           {"[training]\nlocal_batch_size = '6'\n[parallelism]\npipeline_parallel_degree = 2\n"
            "pipeline_parallel_microbatch_steps = ['2:3']",
            2},
           {"[parallelism]\npipeline_parallel_degree = 2\ntensor_parallel_degree = "
            "-1\ndata_parallel_shard_degree = 1\n"
            "disable_sequence_parallel = true\npipeline_parallel_microbatch_size = "
            "'2'\n[training]\nlocal_batch_size = 2\nseq_len = 9\n[model]\nname = 'mixtral'",
            4},
           {"[parallelism]\npipeline_parallel_degree = 6\npipeline_parallel_last_stage_less_layers "
            "= '0'\n"
            "pipeline_parallel_layers_per_stage = 1",
            6},
           {"[parallelism]\ncontext_parallel_degree = -1\ndata_parallel_shard_degree = 1\n"
            "context_parallel_load_balancer = 0\n[training]\nseq_len = 2",
            2},
           {"[parallelism]\ntensor_parallel_degree = -1\ndata_parallel_shard_degree = 1\n"
            "disable_sequence_parallel = 1\n[training]\nlocal_batch_size = 1\nseq_len = 9",
            2},
           {"[parallelism]\ntensor_parallel_degree = 32\n[model]\nhf_config = 1", 32},
           {"[debug]\ninject_faults = ['3:nan:7']\n[parallelism]\ntensor_parallel_degree = '8'",
            0}}) {
    const JobFile file(text + "\n");
    config::Reading job = config::read_job({file.path(), "--training.dataset_path", "x"});
    planner.plan(job, ranks, 0);
    EXPECT_EQ(job.problems.size(), 1u) << text << "\n" << message_of(job.problems);
  }
}

TEST(Planner, FewestRanksFillTheMesh) {
  config::Parallelism p;
  EXPECT_EQ(fewest_ranks(p), 1);
  p.tensor_parallel_degree = 2;
  p.pipeline_parallel_degree = 3;
  EXPECT_EQ(fewest_ranks(p), 6);
  p.expert_parallel_degree = 8;
  EXPECT_EQ(fewest_ranks(p), 24);
}

/// A sweep checks each of its points.
TEST(Planner, AThousandJobsTakeASecond) {
  Planner planner;
  const JobFile file(
      "[model]\nflavor = '70B'\n[training]\nglobal_batch_size = 512\ndataset_path = 'x'\n"
      "[parallelism]\ntensor_parallel_degree = 8\npipeline_parallel_degree = 4\n");
  const std::clock_t begin = std::clock();  // of the processor: a machine may stand still
  for (int i = 1; i <= 1000; ++i) {
    config::Reading job =
        config::read_job({file.path(), "--optimizer.lr", std::to_string(1e-5 * i)});
    planner.plan(job, 256, 0);
    EXPECT_TRUE(job.problems.empty()) << message_of(job.problems);
  }
  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  RecordProperty("seconds", std::to_string(seconds));
  EXPECT_LT(seconds, 4.0 * tessera::test::kSlowdown);
}

}  // namespace
}  // namespace tessera::plan
