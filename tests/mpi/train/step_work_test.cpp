// SPDX-License-Identifier: Apache-2.0
// What a step gives a GPU, and how often it waits for one, counted by the simulated GPU. The
// numbers are those of the tables in share/doc/tessera/simulated-gpu.md.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>

#include "mpi/comm/mpi_main.hpp"
#include "mpi/train/place.hpp"
#include "mpi/train/tiny_model.hpp"
#include "simulated_work.hpp"
#include "support/planned.hpp"
#include "tessera/train/trainer.hpp"

namespace tessera::test {
namespace {

struct Job {
  std::string name;
  mesh::Degrees degrees;
  std::string family = {};  ///< of a mixture; none: Llama
  std::string type = "float32";
  int layers = 6;
  std::string schedule = "1F1B";
  bool documents = false, graphs = false;
  double capacity = 0;  ///< of experts that ranks share
  bool sends_once = false;
  bool registers = false;  ///< buffers of FSDP
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
  job.training.document_mask = row.documents;
  job.compile.enable = row.graphs;
  job.parallelism.fsdp_register_buffers = row.registers;
  if (row.capacity > 0) job.parallelism.expert_parallel_capacity_factor = row.capacity;
  if (row.sends_once) job.parallelism.expert_parallel_comm_backend = "deepep";
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
        trainer_(plan_, model_, mesh_, source_of(row), place_.device) {
    trainer_.stages().initialize(7);
    trainer_.step();
    trainer_.step();
  }

  /// Of the third step, when all that is made once is there.
  Work third() {
    const Work before = simulated_work();
    trainer_.step();
    return difference(simulated_work(), before);
  }
  /// Of its forward and backward passes.
  Work third_passes() {
    const Work before = simulated_work();
    trainer_.compute();
    return difference(simulated_work(), before);
  }
  mesh::DeviceMesh& mesh() { return mesh_; }

 private:
  const data::SampleSource& source_of(const Job& row) const {
    if (row.graphs) return even_;
    return source_;
  }

  Place place_;
  mesh::Layout layout_;
  mesh::DeviceMesh mesh_;
  model::Model model_;
  UnevenSource source_;
  EvenSource even_;
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
      {.name = "Llama, 1 rank, bfloat16, as a graph",
       .degrees = {1, 1, 1, 1, 1},
       .type = "bfloat16",
       .graphs = true},
      {"Llama, 2 stages, 8 microbatches", {2, 1, 1, 1, 1}},
      {.name = "Llama, 2 stages, 8 microbatches, as graphs",
       .degrees = {2, 1, 1, 1, 1},
       .graphs = true},
      {"Llama, FSDP 2", {1, 1, 2, 1, 1}, "", "bfloat16"},
      {"Llama, 2 x 2 x 2, 4 microbatches", {2, 1, 2, 1, 2}},
      {"Mixture of 6 layers, 1 rank", {1, 1, 1, 1, 1}, "qwen3_moe"},
      {"Mixture of 6 layers, 1 rank, bfloat16", {1, 1, 1, 1, 1}, "qwen3_moe", "bfloat16"},
      {.name = "Mixture of 6 layers, 1 rank, bfloat16, as a graph",
       .degrees = {1, 1, 1, 1, 1},
       .family = "qwen3_moe",
       .type = "bfloat16",
       .graphs = true},
      {"Mixture of 6 layers, 2 expert-parallel ranks, bfloat16",
       {.dp_shard = 2, .ep = 2},
       "qwen3_moe",
       "bfloat16"},
      {.name = "Mixture of 6 layers, 2 expert-parallel ranks, with a capacity",
       .degrees = {.dp_shard = 2, .ep = 2},
       .family = "qwen3_moe",
       .capacity = 2},
      {.name = "Mixture of 6 layers, 2 expert-parallel ranks, bfloat16, with a capacity",
       .degrees = {.dp_shard = 2, .ep = 2},
       .family = "qwen3_moe",
       .type = "bfloat16",
       .capacity = 2},
      {.name = "Mixture of 6 layers, 2 expert-parallel ranks, bfloat16, with a capacity, as graphs",
       .degrees = {.dp_shard = 2, .ep = 2},
       .family = "qwen3_moe",
       .type = "bfloat16",
       .graphs = true,
       .capacity = 2},
      {.name = "Mixture of 6 layers, 2 expert-parallel ranks, sent once",
       .degrees = {.dp_shard = 2, .ep = 2},
       .family = "qwen3_moe",
       .sends_once = true},
      {.name = "Mixture of 6 layers, 2 expert-parallel ranks, bfloat16, sent once",
       .degrees = {.dp_shard = 2, .ep = 2},
       .family = "qwen3_moe",
       .type = "bfloat16",
       .sends_once = true},
      {.name = "Mixture of 6 layers, 2 expert-parallel ranks, bfloat16, sent once, with a capacity",
       .degrees = {.dp_shard = 2, .ep = 2},
       .family = "qwen3_moe",
       .type = "bfloat16",
       .capacity = 2,
       .sends_once = true},
      {.name =
           "Mixture of 6 layers, 2 expert-parallel ranks, bfloat16, sent once, with a capacity, "
           "as graphs",
       .degrees = {.dp_shard = 2, .ep = 2},
       .family = "qwen3_moe",
       .type = "bfloat16",
       .graphs = true,
       .capacity = 2,
       .sends_once = true},
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

/// Each gather and each reduction is in memory that NCCL knows. A sum is copied out of it.
TEST_F(StepWork, ExchangesRegisteredBuffers) {
  if (world().size() != 2) GTEST_SKIP() << "two ranks";
  Job job{.name = "", .degrees = {.dp_shard = 2}, .type = "bfloat16"};
  const Work plain = Steps(job).third();
  job.registers = true;
  const Work registered = Steps(job).third();
  const std::string reductions = "collective ncclReduceScatter";
  for (const std::string& call : {std::string("collective ncclAllGather"), reductions}) {
    EXPECT_GT(plain.at(call), 0) << text_of(plain);
    EXPECT_EQ(registered.count(call), 0) << text_of(registered);
    EXPECT_EQ(registered.at(call + ".window"), plain.at(call)) << text_of(registered);
  }
  EXPECT_EQ(sum_of(registered, "launch"), sum_of(plain, "launch") + plain.at(reductions))
      << text_of(difference(registered, plain));
  EXPECT_EQ(sum_of(registered, "wait"), sum_of(plain, "wait"));
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

/// Windows with sinks, values narrower than keys, and documents: one call a layer, forward and
/// backward, and no products of scores. cuDNN has what has neither, with sinks too.
TEST_F(StepWork, AttentionStaysInFlash) {
  const int ranks = world().size();
  for (const std::string family : {"", "gpt_oss", "deepseek_v3"})
    for (const bool documents : {false, true}) {
      if (ranks > 2 || (family.empty() && !documents && ranks == 1)) continue;
      Job job{"", {1, 1, 1, ranks, 1}, family, "bfloat16"};
      job.layers = 2;
      job.documents = documents;
      SCOPED_TRACE(testing::Message() << family << (documents ? " documents" : ""));
      Work found = Steps(job).third_passes();
      const std::int64_t cudnn = found["launch aten::_scaled_dot_product_cudnn_attention"];
      const std::int64_t forward = found["launch aten::_flash_attention_forward"] + cudnn;
      EXPECT_EQ(found["launch aten::_scaled_dot_product_cudnn_attention_backward"], cudnn);
      EXPECT_EQ(found["launch aten::_flash_attention_backward"], forward - cudnn);
      if (ranks == 1 || !documents) {  // a document that crosses a border sees whole blocks
        EXPECT_EQ(cudnn > 0, !documents && family != "deepseek_v3") << cudnn;
      }
      if (ranks == 1) {
        EXPECT_EQ(forward, job.layers);
      }
      EXPECT_GE(forward, job.layers * ranks);
      EXPECT_EQ(found["launch aten::logsumexp"], 0) << text_of(found);
      EXPECT_EQ(sum_of(found, "wait"), 0) << text_of(found);
    }
}

}  // namespace
}  // namespace tessera::test
