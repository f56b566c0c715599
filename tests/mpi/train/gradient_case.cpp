// SPDX-License-Identifier: Apache-2.0
#include "mpi/train/gradient_case.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>

#include "mpi/train/from_rank_0.hpp"
#include "mpi/train/one_rank.hpp"
#include "mpi/train/place.hpp"
#include "mpi/train/tiny_model.hpp"
#include "support/planned.hpp"
#include "tessera/mesh/device_mesh.hpp"
#include "tessera/parallel/tensor_buffer.hpp"
#include "tessera/train/arithmetic.hpp"
#include "tessera/train/setup.hpp"
#include "tessera/train/trainer.hpp"

namespace tessera::test {
namespace {

/// "none", "full", "memory_budget", or an option of mode selective: "2", "op".
void set_recompute(config::ActivationCheckpoint& to, const std::string& how) {
  const bool mode = how == "none" || how == "full" || how == "memory_budget";
  to.mode = mode ? how : "selective";
  if (!mode) to.selective_ac_option = how;
  to.per_op_sac_force_recompute_mm_shapes_by_fqns = {"moe.router.gate", "moe.experts.w3",
                                                     "feed_forward.w1", "attention.wv"};
}

}  // namespace

config::JobConfig job_of(const GradientCase& row) {
  config::JobConfig job = tiny_job(row.dtype == "bfloat16" ? "float32" : row.dtype);
  if (row.dtype == "bfloat16") job.training.mixed_precision_param = row.dtype;
  if (row.bfloat16_weights) job.training.dtype = "bfloat16";
  job.parallelism.pipeline_parallel_schedule = row.schedule;
  job.parallelism.pipeline_parallel_stage_map = row.stage_map;
  job.parallelism.pipeline_parallel_schedule_csv = row.csv;
  job.parallelism.pipeline_parallel_degree = row.pp;
  job.parallelism.pipeline_parallel_split = row.split;
  job.parallelism.pipeline_parallel_split_points = row.points;
  job.parallelism.fsdp_reshard_after_forward = row.reshard;
  job.parallelism.reshard_rules = row.rules;
  job.parallelism.disable_sequence_parallel = !row.sequence_parallel;
  job.parallelism.disable_loss_parallel = !row.loss_parallel;
  job.parallelism.enable_async_tensor_parallel = row.async_tensor_parallel;
  job.parallelism.async_tensor_parallel_chunks = 3;  // does not divide the tokens
  job.parallelism.fsdp_gradient_accumulation = row.adding;
  job.parallelism.fsdp_register_buffers = row.registers;
  const std::int64_t parts = row.dp * row.replicate * row.accumulation;
  job.training.local_batch_size = std::max<std::int64_t>(1, job.training.global_batch_size / parts);
  job.parallelism.pipeline_parallel_microbatch_size =
      std::max<std::int64_t>(1, job.training.local_batch_size / 4);
  set_recompute(job.activation_checkpoint, row.recompute);
  job.activation_checkpoint.offload = row.offload;
  job.debug.deterministic = row.deterministic;
  job.parallelism.context_parallel_rotate_method = row.rotate;
  if (!row.balanced) job.parallelism.context_parallel_load_balancer.reset();
  job.training.document_mask = row.documents;
  job.training.fused_linear_cross_entropy = row.fused_loss;
  if (row.recipe.starts_with("mx")) {
    job.model.converters = {"quantize.linear.mx"};
    job.quantize.linear.mx.recipe_name = row.recipe;
    job.quantize.linear.mx.filter_fqns.clear();
    auto& rows = job.parallelism.pipeline_parallel_microbatch_size;
    rows = std::max<std::int64_t>(2, rows);  // 32 tokens
  } else if (!row.recipe.empty()) {
    job.model.converters = {"quantize.linear.float8"};
    job.quantize.linear.float8.recipe_name = row.recipe;
    job.quantize.linear.float8.enable_fsdp_float8_all_gather = row.gathers_bytes;
  }
  if (row.capacity > 0) job.parallelism.expert_parallel_capacity_factor = row.capacity;
  job.parallelism.pipeline_parallel_expert_parallel_overlap = row.overlaps;
  if (row.sends_once) job.parallelism.expert_parallel_comm_backend = "deepep";
  if (!row.experts.empty()) job.model.converters.push_back("quantize.grouped_mm." + row.experts);
  job.quantize.grouped_mm.float8.fqns = job.quantize.grouped_mm.mx.fqns = {"experts"};
  return job;
}

model::Model model_of(const GradientCase& row, at::Device device) {
  const at::ScalarType type = row.dtype == "float64" ? at::kDouble : at::kFloat;
  const bool latent = !row.family.empty();
  if (row.recipe == "blockwise") return block_model(256, row.tied, latent, row.kv_heads, device);
  if (row.in_blocks()) return block_model(128, row.tied, latent, row.kv_heads, device);
  if (!row.recipe.empty() || !row.experts.empty())
    return even_model(row.tied, type, latent, row.kv_heads, device);
  if (!row.family.empty()) return tiny_family(row.family, type, device);
  return tiny_model(row.tied, type, row.kv_heads, device);
}

mesh::Layout layout_of(const GradientCase& row, int world) {
  return mesh::Layout::resolve({row.pp, row.replicate, row.dp, row.cp, row.tp, row.ep, row.etp},
                               world);
}

namespace {

/// Squares of difference and reference over the boxes of all ranks, two numbers for each parameter
/// of the model.
std::vector<double> squares(train::Trainer& trainer, const model::Model& model,
                            const FirstStep& reference) {
  std::vector<double> sums(2 * model.params.size(), 0);
  for (const auto* param : trainer.stages().params()) {
    if (!param->place.counted()) continue;
    const Box box = param->slice("").box;
    at::Tensor expected = reference.gradients.at(param->spec->fqn);
    for (std::size_t d = 0; d < box.offset.size(); ++d)
      expected = expected.narrow(static_cast<std::int64_t>(d), box.offset[d], box.extent[d]);
    const auto index = static_cast<std::size_t>(param->spec - model.params.data());
    const at::Tensor difference = param->gradient.to(at::kCPU, at::kDouble) - expected;
    sums[2 * index] += difference.square().sum().item<double>();
    sums[2 * index + 1] += expected.square().sum().item<double>();
  }
  return sums;
}

}  // namespace

std::string GradientCase::name() const {
  std::string name = fmt::format("pp{} r{} dp{} cp{} tp{} {}", pp, replicate, dp, cp, tp, dtype);
  const auto add = [&name](bool differs, const std::string& what) {
    name += differs ? " " + what : "";
  };
  add(!family.empty(), fmt::format("{} ep{} etp{}", family, ep, etp));
  add(capacity > 0, fmt::format("capacity={}", capacity));
  add(sends_once, "sent-once");
  add(pp > 1,
      schedule + " cuts=" + (points.empty() ? split : fmt::format("{}", fmt::join(points, ","))));
  add(stage_map != "default", "on " + stage_map);
  add(reshard != "default", "reshard=" + reshard);
  add(!rules.empty(), "with rules");
  add(registers, "registered");
  add(accumulation > 1, fmt::format("accumulate={} {}", accumulation, adding));
  add(tied, "tied");
  add(bfloat16_weights, "bfloat16-weights");
  add(kv_heads != 8, fmt::format("kv{}", kv_heads));
  add(!sequence_parallel, "no-sequence-parallel");
  add(!loss_parallel, "no-loss-parallel");
  add(async_tensor_parallel, "async-tp");
  add(fused_loss != "never", "loss=" + fused_loss);
  add(cp > 1, rotate + (balanced ? " balanced" : " in-order"));
  add(documents, "documents");
  add(!recipe.empty(), recipe);
  add(gathers_bytes, "gathered");
  add(!experts.empty(), experts + "-experts");
  add(recompute != "none", "recompute=" + recompute);
  add(offload, "offload");
  add(deterministic, "deterministic");
  add(backend == comm::Backend::strict, "strict");
  add(!over_nccl, "device-memory-over-mpi");
  return name;
}

GradientError compare_gradients(comm::World& world, const GradientCase& row) {
  const FirstStep& reference = reference_for(world, row);
  const mesh::Layout layout = layout_of(row, world.size());
  const Place place(world, row.backend, row.over_nccl);
  const model::Model model = model_of(row, place.device);
  const plan::JobPlan plan = planned(job_of(row), model, layout);
  mesh::DeviceMesh mesh(world, layout, place.backend,
                        train::ordered_sums_of(plan.arithmetic, place.device),
                        parallel::memory_of(place.device));
  const UnevenSource source;
  train::Trainer trainer(plan, model, mesh, source, place.device);
  trainer.stages().initialize(7);
  trainer.compute();
  std::vector<double> sums = squares(trainer, model, reference);
  const train::StepOutcome outcome = trainer.apply();
  mesh.control()
      .all_reduce({sums.data(), static_cast<std::int64_t>(sums.size()), DType::f64})
      .wait();
  GradientError error;
  error.loss = std::abs(outcome.loss - reference.loss) / reference.loss;
  error.norm = std::abs(outcome.grad_norm - reference.norm) / reference.norm;
  for (std::size_t i = 0; i < model.params.size(); ++i) {
    const double relative = std::sqrt(sums[2 * i] / sums[2 * i + 1]);
    if (std::isnan(error.worst) || relative <= error.worst) continue;
    error.worst = relative;
    error.parameter = model.params[i].fqn;
  }
  return error;
}

GradientError expect_equal_gradients(comm::World& world, const GradientCase& row) {
  GradientError error = compare_gradients(world, row);
  EXPECT_LE(error.worst, row.tolerance()) << row.name() << ": " << error.parameter;
  EXPECT_LE(error.loss, row.tolerance()) << row.name();
  EXPECT_LE(error.norm, row.tolerance()) << row.name() << ": the norm of all gradients";
  return error;
}

namespace {

/// Losses, loads and biases of some steps; the biases as this rank's stages have them, HUGE_VAL for
/// those elsewhere.
std::vector<double> steps_of(const GradientCase& row, mesh::DeviceMesh& mesh, at::Device device) {
  const model::Model model = model_of(row, device);
  const plan::JobPlan plan = planned(job_of(row), model, mesh.layout());
  const UnevenSource source;
  train::Trainer trainer(plan, model, mesh, source, device);
  trainer.stages().initialize(7);
  std::vector<double> figures;
  for (int step = 0; step < 3; ++step) {
    const train::StepOutcome outcome = trainer.step();
    figures.insert(figures.end(), {outcome.loss, outcome.grad_norm, outcome.balance_loss});
    for (const train::ExpertLoad& load : outcome.loads)
      figures.insert(figures.end(), {load.max_over_mean, load.entropy});
  }
  const std::vector<at::Tensor> buffers = trainer.stages().holdings().buffers;
  for (std::size_t i = 0; i < model.buffers.size(); ++i) {
    const at::Tensor& buffer = buffers[i];
    for (std::int64_t e = 0; e < model.buffers[i].shape[0]; ++e)
      figures.push_back(buffer.defined() ? buffer[e].item<double>() : HUGE_VAL);
  }
  return figures;
}

}  // namespace

std::vector<double> three_steps(comm::World& world, const GradientCase& row) {
  const Place place(world, row.backend, row.over_nccl);
  mesh::DeviceMesh mesh(world, layout_of(row, world.size()), place.backend, {},
                        parallel::memory_of(place.device));
  return steps_of(row, mesh, place.device);
}

double compare_steps(comm::World& world, const GradientCase& row) {
  const std::vector<double> expected = from_rank_0(world, [&] {
    mesh::DeviceMesh one(mesh::Layout::resolve({1, 1, 1, 1, 1}, 1), mesh::Rank(0));
    return steps_of(alone(row), one, at::kCPU);
  });
  const std::vector<double> figures = three_steps(world, row);
  double worst = figures.size() == expected.size() ? 0 : HUGE_VAL;
  for (std::size_t i = 0; i < std::min(figures.size(), expected.size()); ++i) {
    if (figures[i] == HUGE_VAL) continue;
    const double relative =
        std::abs(figures[i] - expected[i]) / std::max(std::abs(expected[i]), 1e-3);
    worst = std::isnan(relative) ? HUGE_VAL : std::max(worst, relative);
  }
  return comm::all_reduce_scalar(world.control(), worst, comm::Op::max);
}

}  // namespace tessera::test
