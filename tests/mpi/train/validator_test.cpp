// SPDX-License-Identifier: Apache-2.0
// Validation on every kind of mesh: the loss of the one-rank run, training's bits untouched; and
// what each rank reads.
#include <gtest/gtest.h>

#include <cmath>
#include <mutex>

#include "mpi/comm/mpi_main.hpp"
#include "mpi/train/from_rank_0.hpp"
#include "mpi/train/place.hpp"
#include "mpi/train/tiny_model.hpp"
#include "support/planned.hpp"
#include "tessera/train/trainer.hpp"
#include "tessera/train/validator.hpp"

namespace tessera::test {
namespace {

/// The first 13 uneven samples, of which the even ones have a name of their own; sequences may be
/// shorter.
class Thirteen final : public data::SampleSource {
 public:
  explicit Thirteen(std::int64_t seq_len = 16) : seq_len_(seq_len) {}
  std::int64_t seq_len() const override { return seq_len_; }
  std::optional<std::int64_t> sample_limit() const override { return 13; }
  void read(std::int64_t sample, std::span<std::int32_t> inputs,
            std::span<std::int32_t> labels) const override {
    ASSERT_LT(sample, 13);
    whole_.read_part(sample, {0, seq_len_}, inputs, labels);
  }
  std::vector<std::int64_t> document_starts(std::int64_t sample) const override {
    return whole_.document_starts(sample);
  }
  std::optional<data::SampleOrigin> origin(std::int64_t sample) const override {
    return data::SampleOrigin{sample % 2 == 0 ? "even" : "odd", "", sample / 2, 0, 0, 0};
  }
  std::vector<data::SourceShare> shares(std::int64_t) const override {
    return {{"odd", 0, 0}, {"even", 0, 0}};
  }

 private:
  std::int64_t seq_len_;
  UnevenSource whole_;
};

struct Row {
  mesh::Degrees degrees;
  std::string schedule = "1F1B", family = "", reshard = "default", map = "default";
  bool documents = false;
  std::int64_t seq_len = 16;
};

mesh::Degrees with_experts(mesh::Degrees degrees, int ep) {
  degrees.ep = ep;
  return degrees;
}

std::vector<Row> all_rows() {
  return {{{1, 1, 4, 1, 1}},
          {{1, 2, 2, 1, 1}, "1F1B", "", "never"},
          {{4, 1, 1, 1, 1}, "1F1B"},
          {{2, 1, 2, 1, 1}, "Interleaved1F1B"},
          {{2, 1, 1, 1, 2}, "ZBVZeroBubble"},
          {{2, 1, 2, 1, 1}, "1F1B", "", "default", "1,0"},
          {{1, 1, 1, 1, 4}},
          {{1, 1, 1, 4, 1}, "1F1B", "", "default", "default", true},
          {{2, 1, 1, 2, 1}, "GPipe", "", "always", "default", true},
          {{1, 1, 2, 1, 2}, "1F1B", "", "default", "default", false, 11},
          {{2, 1, 1, 2, 1}, "1F1B", "", "default", "default", false, 9},
          {with_experts({1, 1, 4, 1, 1}, 2), "1F1B", "deepseek_v3"},
          {with_experts({2, 1, 2, 1, 1}, 2), "1F1B", "deepseek_v3", "2"}};
}

/// Four of them on devices, which may be simulated.
std::vector<Row> rows() {
  const std::vector<Row> all = all_rows();
  return test_device().is_cpu() ? all : std::vector<Row>{all[1], all[4], all[7], all[12]};
}

config::JobConfig job_of(const Row& row) {
  config::JobConfig job = tiny_job("float64");
  job.parallelism.pipeline_parallel_degree = row.degrees.pp;
  job.parallelism.pipeline_parallel_schedule = row.schedule;
  job.parallelism.pipeline_parallel_stage_map = row.map;
  job.parallelism.fsdp_reshard_after_forward = row.reshard;
  job.training.document_mask = row.documents;
  job.training.local_batch_size = 16 / (row.degrees.dp_shard * row.degrees.dp_replicate);
  job.validation.enable = true;
  job.validation.local_batch_size = 2;
  job.validation.seq_len = row.seq_len;
  return job;
}

model::Model model_of(const Row& row, at::Device device = at::kCPU) {
  return row.family.empty() ? tiny_model(false, at::kDouble, 8, device)
                            : tiny_family(row.family, at::kDouble, device);
}

/// A trainer on the world's ranks.
struct OnMesh {
  OnMesh(const Row& row, const data::SampleSource& source)
      : layout(mesh::Layout::resolve(row.degrees, world().size())),
        place(world(), comm::Backend::strict),
        mesh(world(), layout, place.backend),
        model(model_of(row, place.device)),
        plan(planned(job_of(row), model, layout)),
        trainer(plan, model, mesh, source, place.device) {
    trainer.stages().initialize(7);
  }
  mesh::Layout layout;
  Place place;
  mesh::DeviceMesh mesh;
  model::Model model;
  plan::JobPlan plan;
  train::Trainer trainer;
};

/// The slow twin: what training on one rank says of the same samples, in one batch with a gradient.
double training_loss(const Row& row, std::int64_t samples) {
  config::JobConfig job = job_of(Row{{1, 1, 1, 1, 1}, "1F1B", row.family});
  job.training.document_mask = row.documents;
  job.training.seq_len = row.seq_len;
  job.training.local_batch_size = job.training.global_batch_size = samples;
  job.training.steps = 1;
  job.validation.enable = false;
  const mesh::Layout layout = mesh::Layout::resolve({1, 1, 1, 1, 1}, 1);
  mesh::DeviceMesh mesh(layout, mesh::Rank(0));
  const model::Model model = model_of(row);
  const Thirteen source(row.seq_len);
  const plan::JobPlan plan = planned(job, model, layout);
  train::Trainer trainer(plan, model, mesh, source, at::kCPU);
  trainer.stages().initialize(7);
  return trainer.step().loss;
}

TEST(Validation, HasTheLossOfTheOneRankRunOnEveryMesh) {
  const UnevenSource trained;
  for (const Row& row : rows()) {
    const std::string what = row.schedule + " " + row.family + " " +
                             std::to_string(row.degrees.pp) + std::to_string(row.degrees.dp_shard) +
                             std::to_string(row.degrees.cp) + std::to_string(row.degrees.tp);
    OnMesh on(row, trained);
    const Thirteen source(row.seq_len);
    for (const auto& [samples, steps] :
         {std::pair<std::optional<std::int64_t>, std::int64_t>{{}, -1}, {5, -1}, {{}, 1}}) {
      plan::DataPlan data = on.plan.data;
      data.validation->samples = samples;
      data.validation->steps = steps;
      train::Validator validator(data, on.model, on.mesh, on.trainer.stages(), source);
      const std::int64_t expected = samples      ? *samples
                                    : steps == 1 ? 2 * on.layout.dp_degree()
                                                 : 13;
      const train::ValidationResult result = validator.run(1);
      EXPECT_EQ(result.samples, expected) << what;
      const double loss =
          from_rank_0(world(), [&] { return std::vector{training_loss(row, expected)}; })[0];
      EXPECT_NEAR(result.loss, loss, 1e-12 * loss) << what << ", " << expected << " samples";
      ASSERT_EQ(result.parts.size(), 2u);
      EXPECT_EQ(result.parts[0].first, "odd");
      EXPECT_NE(result.parts[0].second, result.parts[1].second);
      EXPECT_EQ(validator.run(2).loss, result.loss) << what;
    }
  }
}

std::vector<at::Tensor> everything(train::Trainer& trainer) {
  std::vector<at::Tensor> all;
  for (auto& state : trainer.optimizer_states())
    for (const at::Tensor& tensor : {state.param, state.exp_avg, state.exp_avg_sq})
      all.push_back(tensor.clone());
  for (const at::Tensor& buffer : trainer.stages().holdings().buffers)
    if (buffer.defined()) all.push_back(buffer.clone());
  return all;
}

TEST(Validation, LeavesTrainingItsBits) {
  const UnevenSource trained;
  const Thirteen source;
  for (const Row& row : rows()) {
    std::vector<std::vector<at::Tensor>> ends;
    for (const bool validates : {false, true}) {
      OnMesh on(row, trained);
      train::Validator validator(on.plan.data, on.model, on.mesh, on.trainer.stages(), source);
      for (int step = 0; step < 2; ++step) {
        on.trainer.step();
        if (validates) validator.run(step + 1);
      }
      ends.push_back(everything(on.trainer));
    }
    ASSERT_EQ(ends[0].size(), ends[1].size());
    for (std::size_t i = 0; i < ends[0].size(); ++i)
      EXPECT_TRUE(ends[0][i].equal(ends[1][i])) << row.schedule << i;
  }
}

/// Counts what is asked for.
class Counted final : public data::SampleSource {
 public:
  std::int64_t seq_len() const override { return 16; }
  std::optional<std::int64_t> sample_limit() const override { return std::nullopt; }
  void read(std::int64_t, std::span<std::int32_t>, std::span<std::int32_t>) const override {
    ADD_FAILURE() << "a whole sample was read";
  }
  void read_part(std::int64_t sample, Range positions, std::span<std::int32_t> inputs,
                 std::span<std::int32_t> labels) const override {
    source_.read_part(sample, positions, inputs, labels);
    const std::lock_guard lock(guard_);
    for (std::int64_t t = positions.begin; t < positions.end(); ++t) {
      if (!inputs.empty()) ++inputs_[{sample, t}];
      if (!labels.empty()) ++labels_[{sample, t}];
    }
  }
  using Counts = std::map<std::pair<std::int64_t, std::int64_t>, int>;  ///< by sample and position
  const Counts& inputs() const { return inputs_; }
  const Counts& labels() const { return labels_; }

 private:
  UnevenSource source_;
  mutable std::mutex guard_;
  mutable Counts inputs_, labels_;
};

TEST(Reading, EachRankReadsItsTokensOnceAndNoOthers) {
  for (const Row& row : rows()) {
    if (row.documents || row.seq_len != 16) continue;
    const Counted source;
    OnMesh on(row, source);
    for (int step = 0; step < on.plan.run.steps; ++step) on.trainer.step();
    const train::Reader reader = train::reader_of(on.mesh, on.trainer.stages().map());
    const plan::BatchPlan& plan = on.trainer.batch_plan();
    Counted::Counts expected;
    for (std::int64_t sample = 0; sample < on.plan.run.steps * plan.global_batch; ++sample)
      if (sample % plan.global_batch / plan.rows == reader.dp_rank)
        for (const Range& range : plan.cut.ranges(reader.cp_rank))
          for (std::int64_t t = range.begin; t < range.end(); ++t) expected[{sample, t}] = 1;
    const schedule::PipelineRank pp = parallel::pipeline_rank(on.mesh);
    const schedule::StageMap& map = on.trainer.stages().map();
    EXPECT_EQ(source.inputs(), map.rank_of(map.first()) == pp ? expected : Counted::Counts())
        << row.schedule;
    EXPECT_EQ(source.labels(), map.rank_of(map.last()) == pp ? expected : Counted::Counts())
        << row.schedule;
  }
}

}  // namespace
}  // namespace tessera::test
