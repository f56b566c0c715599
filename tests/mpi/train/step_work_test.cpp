// SPDX-License-Identifier: Apache-2.0
// What a step gives a GPU, and how often it waits for one, counted by the simulated GPU. The
// numbers are those of the tables in share/doc/tessera/simulated-gpu.md.
#include <dlfcn.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>

#include "mpi/comm/mpi_main.hpp"
#include "mpi/train/place.hpp"
#include "mpi/train/tiny_model.hpp"
#include "support/planned.hpp"
#include "tessera/train/trainer.hpp"

namespace tessera::test {
namespace {

/// By kind and name: "launch aten::mm".
using Work = std::map<std::string, std::int64_t>;

/// tessera::sim::work_by_name().
Work work() {
  using Function = std::string (*)();
  void* const function = dlsym(RTLD_DEFAULT, "_ZN7tessera3sim12work_by_nameB5cxx11Ev");
  if (function == nullptr) throw std::runtime_error("the simulated GPU is not preloaded");
  std::istringstream lines(reinterpret_cast<Function>(function)());
  Work found;
  for (std::string kind, name, count; lines >> kind >> name >> count;)
    found[kind + " " + name] = std::stoll(count);
  return found;
}

Work difference(Work later, const Work& earlier) {
  for (const auto& [name, count] : earlier) later[name] -= count;
  std::erase_if(later, [](const auto& each) { return each.second == 0; });
  return later;
}

std::int64_t sum_of(const Work& work, const std::string& kind) {
  std::int64_t sum = 0;
  for (const auto& [name, count] : work)
    if (name.starts_with(kind + " ")) sum += count;
  return sum;
}

struct Job {
  std::string name;
  mesh::Degrees degrees;
  std::string family = {};  ///< of a mixture; none: Llama
  std::string type = "float32";
  int layers = 6;
  std::string schedule = "1F1B";
};

/// Whose rows of every matrix begin at multiples of 16 bytes, as in real models.
model::DecoderShape shape_of(const Job& row) {
  model::DecoderShape shape = row.family.empty() ? dense_shape(false, 4) : tiny_shape(row.family);
  shape.dim = shape.hidden = 64;
  shape.head_dim = 8;
  shape.layers = row.layers;
  return shape;
}

config::JobConfig job_of(const Job& row) {
  config::JobConfig job = tiny_job("float32");
  job.training.mixed_precision_param = row.type;
  job.training.global_batch_size = 8;
  job.training.local_batch_size = 8 / (row.degrees.dp_shard * row.degrees.dp_replicate);
  if (row.degrees.pp > 1) job.parallelism.pipeline_parallel_microbatch_size = 1;
  job.parallelism.pipeline_parallel_schedule = row.schedule;
  return job;
}

/// Steps of one trainer.
class Steps {
 public:
  explicit Steps(const Job& row)
      : place_(world()),
        layout_(mesh::Layout::resolve(row.degrees, world().size())),
        mesh_(world(), layout_, place_.backend),
        model_(model::make_decoder(
            shape_of(row), 16, row.type == "bfloat16" ? at::kBFloat16 : at::kFloat, place_.device)),
        plan_(planned(job_of(row), model_, layout_)),
        trainer_(plan_, model_, mesh_, source_, place_.device) {
    trainer_.stages().initialize(7);
    trainer_.step();
    trainer_.step();
  }

  /// Of the third step, when all that is made once is there.
  Work third() {
    const Work before = work();
    trainer_.step();
    return difference(work(), before);
  }
  /// Of its forward and backward passes.
  Work third_passes() {
    const Work before = work();
    trainer_.compute();
    return difference(work(), before);
  }
  mesh::DeviceMesh& mesh() { return mesh_; }

 private:
  Place place_;
  mesh::Layout layout_;
  mesh::DeviceMesh mesh_;
  model::Model model_;
  UnevenSource source_;
  plan::JobPlan plan_;
  train::Trainer trainer_;
};

std::string text_of(const Work& work) {
  std::string text;
  for (const auto& [name, count] : work) text += fmt::format("{} {}\n", name, count);
  return text;
}

/// The document's row "| name | 1 | 2 |".
std::string row_of_document(const std::string& name) {
  std::ifstream file(std::string(TESSERA_TEST_DATA) + "/../../share/doc/tessera/simulated-gpu.md");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("| " + name + " |")) return line;
  return "no row | " + name + " |";
}

class StepWork : public testing::Test {
 protected:
  void SetUp() override {
    if (wanted_device() != "sim") GTEST_SKIP() << "only the simulated GPU counts";
  }
};

TEST_F(StepWork, IsWhatTheDocumentSays) {
  const std::vector<Job> jobs{
      {"Llama, 1 rank", {1, 1, 1, 1, 1}},
      {"Llama, 1 rank, bfloat16", {1, 1, 1, 1, 1}, "", "bfloat16"},
      {"Llama, 2 stages, 8 microbatches", {2, 1, 1, 1, 1}},
      {"Llama, FSDP 2", {1, 1, 2, 1, 1}, "", "bfloat16"},
      {"Llama, 2 x 2 x 2, 4 microbatches", {2, 1, 2, 1, 2}},
      {"Mixture of 6 layers, 1 rank", {1, 1, 1, 1, 1}, "qwen3_moe"},
      {"Mixture of 6 layers, 1 rank, bfloat16", {1, 1, 1, 1, 1}, "qwen3_moe", "bfloat16"},
      {"Mixture of 6 layers, 2 expert-parallel ranks, bfloat16",
       {.dp_shard = 2, .ep = 2},
       "qwen3_moe",
       "bfloat16"},
  };
  for (const Job& job : jobs) {
    const mesh::Degrees& d = job.degrees;
    if (d.pp * d.dp_replicate * d.dp_shard * d.cp * d.tp != world().size()) continue;
    Steps steps(job);
    const Work found = steps.third();
    std::string row = "| " + job.name + " |";
    for (const char* kind : {"wait", "launch", "copy", "collective"})
      row += fmt::format(" {} |", comm::all_reduce_scalar(steps.mesh().control(),
                                                          sum_of(found, kind), comm::Op::max));
    EXPECT_EQ(row, row_of_document(job.name)) << text_of(found);
  }
}

/// A block's launches in forward and backward, in a training in bfloat16: what two layers more add.
TEST_F(StepWork, OfABlockIsWhatTheDocumentSays) {
  if (world().size() > 1) GTEST_SKIP() << "one rank";
  const Job job{"", {1, 1, 1, 1, 1}, "", "bfloat16"};
  Job deeper = job;
  deeper.layers += 2;
  const Work found = difference(Steps(deeper).third_passes(), Steps(job).third_passes());
  std::int64_t launches = 0;
  for (const auto& [name, count] : found) {
    EXPECT_TRUE(name.starts_with("launch ")) << name;
    const std::string cell = "`" + name.substr(name.find(' ') + 1) + "`";
    EXPECT_EQ(fmt::format("| {} | {} |", cell, count / 2), row_of_document(cell));
    launches += count / 2;
  }
  EXPECT_EQ(fmt::format("| all | {} |", launches), row_of_document("all")) << text_of(found);
}

}  // namespace
}  // namespace tessera::test
