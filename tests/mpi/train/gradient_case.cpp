#include "mpi/train/gradient_case.hpp"

#include <fmt/format.h>

#include <cmath>
#include <map>

#include "mpi/train/tiny_model.hpp"
#include "tessera/mesh/device_mesh.hpp"
#include "tessera/train/trainer.hpp"

namespace tessera::test {
namespace {

config::JobConfig job_of(const GradientCase& row) {
  config::JobConfig job = tiny_job(row.dtype);
  job.parallelism.pipeline_parallel_schedule = row.schedule;
  job.parallelism.fsdp_reshard_after_forward = row.reshard;
  const int dp = row.dp * row.replicate;
  job.training.local_batch_size = job.training.global_batch_size / dp / row.accumulation;
  job.parallelism.pipeline_parallel_microbatch_size = std::max<std::int64_t>(1, job.training.local_batch_size / 4);
  job.activation_checkpoint.mode = row.recompute;
  job.debug.deterministic = row.deterministic;
  return job;
}

/// Whole gradients by name, from a run of one rank without communication.
struct Reference {
  std::map<std::string, torch::Tensor> gradients;
  double loss = 0;
};

Reference compute_reference(bool tied, const std::string& dtype) {
  GradientCase row;
  row.tied = tied;
  row.dtype = dtype;
  const config::JobConfig job = job_of(row);
  const mesh::Layout layout = mesh::Layout::resolve({1, 1, 1, 1, 1}, 1);
  mesh::DeviceMesh mesh(layout, 0);
  const model::Model model = tiny_model(tied, dtype == "float64" ? torch::kFloat64 : torch::kFloat32);
  const UnevenSource source;
  train::Trainer trainer(job, model, mesh, train::BatchPlan::make(job, layout), source, torch::kCPU);
  trainer.stage().initialize(7);
  Reference reference;
  reference.loss = trainer.compute_gradients(0, 0, nullptr);
  for (const auto& ref : trainer.stage().params())
    reference.gradients[ref.param->spec->fqn] = ref.param->gradient.to(torch::kFloat64).clone();
  return reference;
}

const Reference& reference_for(bool tied, const std::string& dtype) {
  static std::map<std::pair<bool, std::string>, Reference> known;
  const auto key = std::make_pair(tied, dtype);
  if (!known.contains(key)) known[key] = compute_reference(tied, dtype);
  return known[key];
}

/// Squares of difference and reference over the boxes of all ranks, two numbers for each parameter of the model.
std::vector<double> squares(train::Trainer& trainer, const model::Model& model, const Reference& reference) {
  std::vector<double> sums(2 * model.params.size(), 0);
  for (const auto& ref : trainer.stage().params()) {
    if (!ref.counted) continue;
    const TensorSlice box = ref.param->slice("");
    torch::Tensor expected = reference.gradients.at(ref.param->spec->fqn);
    for (std::size_t d = 0; d < box.offset.size(); ++d)
      expected = expected.narrow(static_cast<std::int64_t>(d), box.offset[d], box.extent[d]);
    const auto index = static_cast<std::size_t>(ref.param->spec - model.params.data());
    const torch::Tensor difference = ref.param->gradient.to(torch::kFloat64) - expected;
    sums[2 * index] += difference.square().sum().item<double>();
    sums[2 * index + 1] += expected.square().sum().item<double>();
  }
  return sums;
}

void add_pipelined(std::vector<GradientCase>& rows, const GradientCase& row) {
  if (row.pp == 1) {
    rows.push_back(row);
    return;
  }
  for (const char* schedule : {"1F1B", "GPipe"}) {
    rows.push_back(row);
    rows.back().schedule = schedule;
  }
}

}  // namespace

std::string GradientCase::name() const {
  return fmt::format("pp{} r{} dp{} tp{} {} reshard={} {} accumulate={} recompute={} {} {}{}", pp, replicate, dp, tp, schedule, reshard,
                     tied ? "tied" : "untied", accumulation, recompute, dtype,
                     backend == comm::Backend::strict ? "strict" : "mpi", deterministic ? " deterministic" : "");
}

GradientError compare_gradients(comm::World& world, const GradientCase& row) {
  const Reference& reference = reference_for(row.tied, row.dtype);
  const config::JobConfig job = job_of(row);
  const mesh::Layout layout = mesh::Layout::resolve({row.pp, row.replicate, row.dp, 1, row.tp}, world.size());
  mesh::DeviceMesh mesh(world, layout, row.backend);
  const model::Model model = tiny_model(row.tied, row.dtype == "float64" ? torch::kFloat64 : torch::kFloat32);
  const UnevenSource source;
  train::Trainer trainer(job, model, mesh, train::BatchPlan::make(job, layout), source, torch::kCPU);
  trainer.stage().initialize(7);
  const double loss = trainer.compute_gradients(0, 0, nullptr);
  std::vector<double> sums = squares(trainer, model, reference);
  mesh.control().all_reduce({sums.data(), static_cast<std::int64_t>(sums.size()), DType::f64}).wait();
  GradientError error;
  error.loss = std::abs(loss - reference.loss) / reference.loss;
  for (std::size_t i = 0; i < model.params.size(); ++i) {
    const double relative = std::sqrt(sums[2 * i] / sums[2 * i + 1]);
    if (!(relative <= error.worst)) error = {relative, model.params[i].fqn, error.loss};
  }
  return error;
}

std::vector<GradientCase> gradient_cases(int world) {
  std::vector<GradientCase> rows;
  for (int pp = 1; pp <= world; pp *= 2)
    for (int tp = 1; pp * tp <= world; tp *= 2)
      for (const char* reshard : {"default", "always", "never"})
        for (const bool tied : {false, true})
          for (const int accumulation : {1, 2}) {
            GradientCase row;
            row.pp = pp;
            row.tp = tp;
            row.dp = world / pp / tp;
            row.reshard = reshard;
            row.tied = tied;
            row.accumulation = accumulation;
            add_pipelined(rows, row);
          }
  return rows;
}

}  // namespace tessera::test
