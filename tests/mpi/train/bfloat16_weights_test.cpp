// SPDX-License-Identifier: Apache-2.0
// Masters and moments in bf16: the random bits that round them are the same on every mesh, and a
// run that resumes goes through the same ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <map>

#include "mpi/train/state_fixture.hpp"

namespace tessera::test {
namespace {

struct Row {
  mesh::Degrees degrees{1, 1, 1, 1, 1};
  std::string family = {};
  std::int64_t seed = 3;
  bool offload = false;
  std::string weights = "bfloat16", moments = "auto";
  bool randomly = true;
};

config::JobConfig job_of(const Row& row) {
  config::JobConfig job = tiny_job("float32");
  job.training.dtype = row.weights;
  job.training.global_batch_size = 8;
  job.training.local_batch_size =
      4 / std::max(1, row.degrees.dp_replicate * row.degrees.dp_shard / 2);
  job.training.enable_cpu_offload = row.offload;
  if (row.degrees.pp > 1) job.parallelism.pipeline_parallel_microbatch_size = 1;
  job.debug.seed = row.seed;
  job.optimizer.moments_dtype = row.moments;
  job.optimizer.stochastic_rounding = row.randomly;
  return job;
}

model::Model model_of(const Row& row, at::Device device) {
  return row.family.empty() ? tiny_model(false, at::kFloat, 8, device)
                            : tiny_family(row.family, at::kFloat, device);
}

class Training : public EvenTraining {
 public:
  explicit Training(const Row& row)
      : EvenTraining(row.degrees, job_of(row),
                     [&row](at::Device device) { return model_of(row, device); }) {}

  void steps(int count) {
    for (int i = 0; i < count; ++i) EXPECT_FALSE(trainer().step().skipped);
  }
};

/// A parameter with its moments, in host memory.
using Values = std::array<at::Tensor, 3>;

Values values_of(const optim::ParamState& state) {
  const auto host = [](const at::Tensor& tensor) { return tensor.to(at::kCPU).clone(); };
  return {host(state.param), host(state.exp_avg), host(state.exp_avg_sq)};
}

/// After `steps` steps on one rank, by parameter.
std::map<std::string, Values> on_one_rank(const Row& row, int steps) {
  Row alone = row;
  alone.degrees = {1, 1, 1, 1, 1};
  const mesh::Layout layout = mesh::Layout::resolve(alone.degrees, 1);
  mesh::DeviceMesh mesh(layout, mesh::Rank(0));
  const model::Model model = model_of(row, at::kCPU);
  const plan::JobPlan plan = planned(job_of(alone), model, layout);
  const EvenSource source;
  train::Trainer trainer(plan, model, mesh, source, at::kCPU);
  trainer.stages().initialize(7);
  for (int i = 0; i < steps; ++i) trainer.step();
  std::map<std::string, Values> values;
  for (const optim::ParamState& state : trainer.optimizer_states())
    values[state.fqn] = values_of(state);
  return values;
}

/// Share of the elements in bfloat16 of all ranks that have the bits of `expected`.
double share_of_equal_bits(Training& training, const std::map<std::string, Values>& expected) {
  double equal = 0, all = 0;
  for (const optim::ParamState& state : training.trainer().optimizer_states()) {
    const Values values = values_of(state);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (values[i].scalar_type() == at::kFloat) continue;
      at::Tensor whole = expected.at(state.fqn)[i];
      for (std::size_t dim = 0; dim < state.box.offset.size(); ++dim)
        whole = whole.narrow(static_cast<std::int64_t>(dim), state.box.offset[dim],
                             state.box.extent[dim]);
      equal += values[i].eq(whole).sum().item<double>();
      all += static_cast<double>(values[i].numel());
    }
  }
  comm::Communicator& control = training.mesh().control();
  return comm::all_reduce_scalar(control, equal, comm::Op::sum) /
         comm::all_reduce_scalar(control, all, comm::Op::sum);
}

std::vector<Row> rows() {
  const int n = world().size();
  if (n == 1) return {{}, {.offload = true}, {.weights = "float32", .moments = "bfloat16"}};
  std::vector<Row> rows{{.degrees = {1, 1, n, 1, 1}},
                        {.degrees = {1, 1, 1, 1, n}},
                        {.degrees = {n, 1, 1, 1, 1}},
                        {.degrees = {1, n, 1, 1, 1}},
                        {.degrees = {1, 1, n, 1, 1}, .offload = true},
                        {.degrees = {1, 1, n, 1, 1}, .family = "deepseek_v3"}};
  rows.back().degrees.ep = n;
  rows.push_back({.degrees = {1, 1, 1, 1, n}, .weights = "float32", .moments = "bfloat16"});
  if (n >= 4) rows.push_back({.degrees = {1, 1, n / 2, 1, 2}});
  if (n >= 4) rows.push_back({.degrees = {2, 1, 1, 1, n / 2}, .family = "mixtral"});
  return rows;
}

/// Sums in another order change the last bits of float32, which turn few roundings.
TEST(Bfloat16Weights, AreRoundedTheSameOnEveryMesh) {
  for (const Row& row : rows()) {
    Training training(row);
    training.steps(1);
    const double same = share_of_equal_bits(training, on_one_rank(row, 1));
    Row other = row;
    ++other.seed;
    const double others = share_of_equal_bits(training, on_one_rank(other, 1));
    EXPECT_GE(same, 0.998) << training.mesh().layout().to_string() << ' ' << row.family;
    EXPECT_LE(others, 0.8);
  }
}

/// To nearest there is no seed, and results are others.
TEST(Bfloat16Weights, AreRoundedToNearestByAKey) {
  Row nearest;
  nearest.degrees.dp_shard = world().size();
  nearest.randomly = false;
  Training training(nearest);
  training.steps(1);
  Row other = nearest;
  ++other.seed;
  EXPECT_GE(share_of_equal_bits(training, on_one_rank(other, 1)), 0.998);
  other.randomly = true;
  EXPECT_LE(share_of_equal_bits(training, on_one_rank(other, 1)), 0.8);
}

TEST(Bfloat16Weights, GradientsAreWrittenInTheirOwnType) {
  Row row;
  row.degrees.dp_shard = world().size();
  const SharedFolder folder;
  Training training(row);
  training.trainer().compute();
  const fs::path file = folder.path() / "gradients.safetensors";
  train::dump_gradients(training.stages().params(), training.model(), training.mesh().control(),
                        file);
  if (world().rank() != 0) return;
  std::ifstream stream(file, std::ios::binary);
  std::uint64_t size = 0;
  stream.read(reinterpret_cast<char*>(&size), sizeof size);
  std::string header(size, ' ');
  stream.read(header.data(), static_cast<std::streamsize>(size));
  EXPECT_THAT(header, testing::HasSubstr("\"F32\""));
  EXPECT_THAT(header, testing::Not(testing::HasSubstr("BF16")));
}

/// Between float32 and bfloat16, to nearest.
TEST(Bfloat16Weights, AreConvertedByALoad) {
  Row narrow;
  narrow.degrees.dp_shard = world().size();
  Row wide = narrow;
  wide.weights = "float32";
  for (const auto& [from, to] : {std::pair{wide, narrow}, std::pair{narrow, wide}}) {
    const SharedFolder folder;
    Training saved(from), loaded(to);
    saved.steps(1);
    saved.save(folder.path());
    loaded.load(folder.path());
    for (std::size_t i = 0; i < saved.trainer().optimizer_states().size(); ++i) {
      const Values stored = values_of(saved.trainer().optimizer_states()[i]),
                   read = values_of(loaded.trainer().optimizer_states()[i]);
      for (std::size_t k = 0; k < read.size(); ++k)
        EXPECT_TRUE(at::equal(read[k], stored[k].to(read[k].scalar_type())));
    }
  }
}

TEST(Bfloat16Weights, ResumeWithTheSameBits) {
  for (const Row& row : {rows().front(), rows().back()}) {
    const SharedFolder folder;
    Training training(row);
    training.steps(2);
    training.save(folder.path());
    training.steps(2);
    std::map<std::string, Values> straight;
    for (const optim::ParamState& state : training.trainer().optimizer_states())
      straight[state.fqn] = values_of(state);
    training.load(folder.path());
    training.steps(2);
    for (const optim::ParamState& state : training.trainer().optimizer_states()) {
      const Values resumed = values_of(state);
      for (std::size_t i = 0; i < resumed.size(); ++i)
        EXPECT_TRUE(at::equal(resumed[i], straight[state.fqn][i])) << state.fqn;
    }
  }
}

TEST(Bfloat16Weights, HaveTypesOfTheirOwn) {
  Row wide_moments;
  wide_moments.degrees.dp_shard = world().size();
  wide_moments.moments = "float32";
  Row narrow = wide_moments;
  narrow.moments = "auto";
  for (const Row& row : {wide_moments, narrow}) {
    Training training(row);
    training.steps(1);
    for (const optim::ParamState& state : training.trainer().optimizer_states()) {
      EXPECT_EQ(state.param.scalar_type(), at::kBFloat16);
      EXPECT_EQ(state.grad.scalar_type(), at::kFloat);
      EXPECT_EQ(state.exp_avg.scalar_type(), row.moments == "float32" ? at::kFloat : at::kBFloat16);
    }
  }
}

}  // namespace
}  // namespace tessera::test
