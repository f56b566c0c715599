// SPDX-License-Identifier: Apache-2.0
// What a rehearsal of a rank predicts of its memory, against what LibTorch's allocator hands out in
// two steps of all ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "mpi/comm/mpi_main.hpp"
#include "mpi/train/gradient_case.hpp"
#include "mpi/train/place.hpp"
#include "mpi/train/spread.hpp"
#include "mpi/train/tiny_model.hpp"
#include "support/planned.hpp"
#include "tessera/kernels/allocations.hpp"
#include "tessera/kernels/shapes.hpp"
#include "tessera/parallel/tensor_buffer.hpp"
#include "tessera/train/rehearsal.hpp"
#include "tessera/train/setup.hpp"
#include "tessera/train/trainer.hpp"

namespace tessera::test {
namespace {

/// Of predicted to counted bytes, in a pipeline. Without one, they are equal.
constexpr double kLimit = 0.02;

/// The same where tensors have shapes alone. Attention in float64 takes other temporary memory on a
/// GPU; these models are small.
constexpr double kShapesLimit = 0.03;

/// Wide, so that a tensor on its way to another stage is some thousandths of a rank's memory. How
/// long it stays depends on the other ranks' speed, which no rehearsal knows.
model::DecoderShape wide_shape(const GradientCase& row) {
  model::DecoderShape shape =
      row.family.empty() ? dense_shape(row.tied, row.kv_heads) : tiny_shape(row.family);
  shape.dim = 128;
  shape.head_dim = 16;
  shape.hidden = 320;
  shape.vocab = 512;
  if (!shape.mixture) return shape;
  shape.mixture->hidden = 64;
  shape.mixture->routing.forced_even = true;
  return shape;
}

plan::JobPlan plan_for_memory(const GradientCase& row, void (*edit)(config::JobConfig&)) {
  const model::DecoderShape shape = wide_shape(row);
  config::JobConfig job = job_of(row);
  edit(job);
  plan::JobPlan plan = planned(job, model::spec_of(shape), layout_of(row, world().size()));
  plan.model.shape = shape;
  return plan;
}

std::int64_t counted_bytes(const plan::JobPlan& plan, const Place& place) {
  mesh::DeviceMesh mesh(world(), plan.layout, place.backend, {}, parallel::memory_of(place.device));
  const kernels::Allocations counted(place.device.type());
  const model::Model model = train::model_of(plan, place.device);
  const UnevenSource source;
  train::Trainer trainer(plan, model, mesh, source, place.device);
  trainer.stages().initialize(7);
  for (int step = 0; step < 2; ++step) trainer.step();
  return counted.peak();
}

/// Up to four tensors cross a cut inside a block: those on their way may exceed the limit.
bool cuts_blocks(const GradientCase& row) {
  return !row.points.empty() || row.split == "balanced_sublayer";
}

/// On devices, ordered sums over NCCL take tensors, and the simulated one lacks a product.
bool needs_more(const GradientCase& row) {
  return !test_device().is_cpu() &&
         (row.deterministic || (row.fused_loss != "never" && row.dtype == "bfloat16"));
}

using Edit = void (*)(config::JobConfig&);
void keep(config::JobConfig&) {}

/// The largest relative error of all ranks.
double error_of(const GradientCase& row, const plan::JobPlan& plan, std::int64_t counted,
                at::Device device, double limit) {
  const std::int64_t predicted =
      train::rehearse_memory(plan, mesh::Rank(world().rank()), device).peak_bytes;
  const double error = std::abs(static_cast<double>(predicted) / static_cast<double>(counted) - 1);
  EXPECT_LE(error, limit) << row.name() << " on " << device << ": " << predicted << " of "
                          << counted;
  return comm::all_reduce_scalar(world().control(), error, comm::Op::max);
}

class Errors {
 public:
  explicit Errors(const char* what = "memory") : what_(what) {}
  void add(const GradientCase& row, double error) {
    ++rows_;
    if (error <= 0) ++exact_;
    if (error <= worst_) return;
    worst_ = error;
    name_ = row.name();
  }
  void print() const {
    if (world().rank() == 0)
      std::printf("%s: %d rows on %d ranks, %d exactly, at worst %.2f %% off: %s\n", what_, rows_,
                  world().size(), exact_, 100 * worst_, name_.c_str());
  }
  int rows() const { return rows_; }

 private:
  const char* what_;
  int rows_ = 0, exact_ = 0;
  double worst_ = 0;
  std::string name_;
};

/// Of a rehearsal on the device itself and, where that is a GPU, of one with shapes alone.
class Predictions {
 public:
  void add(const GradientCase& row, Edit edit = keep) {
    const Place place(world(), comm::Backend::mpi, row.over_nccl);
    const plan::JobPlan plan = plan_for_memory(row, edit);
    if (!train::why_not_rehearsed(plan).empty()) return;
    const std::int64_t counted = counted_bytes(plan, place);
    EXPECT_GT(counted, 100000) << "nothing was counted";
    same_.add(row, error_of(row, plan, counted, place.device, row.pp > 1 ? kLimit : 0));
    const at::Device shapes = kernels::shape_device();
    if (place.device.is_cpu() || !train::why_not_rehearsed(plan, shapes).empty()) return;
    shapes_.add(row, error_of(row, plan, counted, shapes, kShapesLimit));
  }
  void print() const {
    same_.print();
    if (shapes_.rows() > 0) shapes_.print();
  }
  int rows() const { return same_.rows(); }

 private:
  Errors same_, shapes_{"shapes alone"};
};

/// Of `rows`, a spread of `usual` or of as many as TESSERA_ROWS says.
int expect_predicted(const std::vector<GradientCase>& rows, std::size_t usual) {
  Predictions errors;
  for (const GradientCase& row : spread_of(rows, rows_from_environment(usual)).rows)
    errors.add(row);
  errors.print();
  return errors.rows();
}

TEST(Memory, RowsOfTheGradientTest) {
  std::vector<GradientCase> rows = in_types_by_turns(all_cases(world().size()));
  std::erase_if(rows, [](const GradientCase& row) { return cuts_blocks(row) || needs_more(row); });
  const int predicted = expect_predicted(rows, 26);
  if (world().size() == 8) {
    EXPECT_GE(predicted, 20);
  }
}

/// Where a rank's experts get rows from others.
TEST(Memory, ExpertsOfAllRanks) {
  std::vector<GradientCase> rows;
  GradientCase row;
  row.dp = row.ep = world().size();
  for (const char* family : {"qwen3_moe", "deepseek_v3", "gpt_oss"})
    for (const char* rounded : {"", "float8", "mx"})
      for (const double capacity : {0.0, 4.0})  // rows fit in 4
        for (const bool once : {false, true}) {
          row.family = family;
          row.experts = rounded;
          row.capacity = capacity;
          row.sends_once = once;
          rows.push_back(row);
        }
  EXPECT_GE(expect_predicted(rows, 6), 6);
}

/// Masters or activations in host memory, weights without gradients, gradients and sums in other
/// types.
TEST(Memory, OtherKeys) {
  Predictions errors;
  GradientCase row;
  row.dp = world().size();
  row.dtype = "float32";
  row.accumulation = 2;
  errors.add(row, [](config::JobConfig& job) {
    job.training.freeze = {"tok_embeddings", "layers\\.[0-2]\\..*norm"};
  });
  errors.add(row, [](config::JobConfig& job) { job.training.enable_cpu_offload = true; });
  errors.add(row, [](config::JobConfig& job) {
    job.training.mixed_precision_param = job.training.mixed_precision_reduce = "bfloat16";
  });
  errors.add(row, [](config::JobConfig& job) { job.activation_checkpoint.offload = true; });
  errors.add(row, [](config::JobConfig& job) { job.training.dtype = "bfloat16"; });
  errors.add(row, [](config::JobConfig& job) {
    job.training.dtype = job.training.mixed_precision_param = "bfloat16";
    job.optimizer.moments_dtype = "float32";
  });
  errors.add(row, [](config::JobConfig& job) { job.optimizer.moments_dtype = "bfloat16"; });
  errors.print();
  EXPECT_EQ(errors.rows(), 7);
}

/// Weights that are gathered in bytes, with others in their units, and scales for all.
TEST(Memory, WeightsInBytes) {
  Predictions errors;
  GradientCase row;
  row.recipe = "tensorwise";
  row.gathers_bytes = true;
  row.dp = world().size();
  for (const char* type : {"float64", "float32", "bfloat16"}) {
    row.dtype = type;
    errors.add(row);
  }
  for (const char* reshard : {"always", "never"}) {
    row.reshard = reshard;
    errors.add(row);
  }
  errors.add(row, [](config::JobConfig& job) { job.training.enable_cpu_offload = true; });
  errors.print();
  EXPECT_EQ(errors.rows(), 6);
}

/// What a run decides by what it measures is not predicted, and neither are uneven experts.
TEST(Memory, SaysWhyNot) {
  GradientCase row;
  row.dp = world().size();
  row.recompute = "memory_budget";
  EXPECT_THAT(train::why_not_rehearsed(plan_for_memory(row, keep)),
              testing::HasSubstr("memory_budget"));
  if (world().size() == 1) return;
  row.recompute = "none";
  row.family = "qwen3_moe";
  row.ep = world().size();
  plan::JobPlan plan = plan_for_memory(row, keep);
  EXPECT_EQ(train::why_not_rehearsed(plan), "");
  plan.model.shape.mixture->routing.forced_even = false;
  EXPECT_THAT(train::why_not_rehearsed(plan), testing::HasSubstr("rows of each expert"));
}

}  // namespace
}  // namespace tessera::test
