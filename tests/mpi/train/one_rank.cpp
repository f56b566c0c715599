// SPDX-License-Identifier: Apache-2.0
#include "mpi/train/one_rank.hpp"

#include <map>
#include <string>
#include <vector>

#include "mpi/train/from_rank_0.hpp"
#include "mpi/train/tiny_model.hpp"
#include "support/planned.hpp"
#include "tessera/mesh/device_mesh.hpp"
#include "tessera/train/trainer.hpp"

namespace tessera::test {

namespace {

/// Balance losses are means over microbatches of what is no sum over tokens, and float8 has scales
/// of microbatches: the reference has the same ones.
int accumulation_of_reference(const GradientCase& row) {
  if (row.family != "qwen3_moe" && row.recipe.empty() && row.experts.empty()) return 1;
  const config::Training training = job_of(row).training;
  const std::int64_t rows = row.pp > 1 ? job_of(row).parallelism.pipeline_parallel_microbatch_size
                                       : training.local_batch_size;
  // An expert's scales are those of the tokens of all ranks that use it.
  const int together = !row.experts.empty() && row.ep > 1 ? row.dp : 1;
  return static_cast<int>(training.global_batch_size / rows / together);
}

}  // namespace

GradientCase alone(const GradientCase& of) {
  GradientCase row;
  row.tied = of.tied;
  // What is rounded to bfloat16 on the way is compared with what is not.
  row.dtype = of.dtype == "bfloat16" ? "float32" : of.dtype;
  row.bfloat16_weights = of.bfloat16_weights;
  row.kv_heads = of.kv_heads;
  row.family = of.family;
  row.accumulation = accumulation_of_reference(of);
  row.documents = of.documents;
  row.recipe = of.recipe;
  row.experts = of.experts;
  return row;
}

OneRank on_one_rank(const GradientCase& row, const config::JobConfig& job,
                    const data::SampleSource& source, at::Device device) {
  const mesh::Layout layout = mesh::Layout::resolve({1, 1, 1, 1, 1}, 1);
  mesh::DeviceMesh mesh(layout, mesh::Rank(0));
  const model::Model model = model_of(row, device);
  const plan::JobPlan plan = planned(job, model, layout);
  train::Trainer trainer(plan, model, mesh, source, device);
  trainer.stages().initialize(7);
  OneRank result;
  trainer.compute();
  for (const auto* param : trainer.stages().params())
    result.gradients[param->spec->fqn] = param->gradient.to(at::kCPU, at::kDouble).clone();
  const train::StepOutcome outcome = trainer.apply();
  result.loss = outcome.loss;
  result.norm = outcome.grad_norm;
  return result;
}

namespace {

OneRank compute_reference(comm::World& world, const GradientCase& row) {
  const std::vector<model::ParamSpec> params = model_of(row, at::kCPU).params;
  const std::vector<double> values = from_rank_0(world, [&] {
    const OneRank found = on_one_rank(row, job_of(row), UnevenSource());
    std::vector<double> flat{found.loss, found.norm};
    for (const model::ParamSpec& spec : params) {
      const at::Tensor gradient = found.gradients.at(spec.fqn).contiguous();
      const double* data = gradient.const_data_ptr<double>();
      flat.insert(flat.end(), data, data + gradient.numel());
    }
    return flat;
  });
  OneRank reference;
  reference.loss = values[0];
  reference.norm = values[1];
  const at::Tensor all = at::tensor(values);
  std::int64_t begin = 2;
  for (const model::ParamSpec& spec : params) {
    const at::Tensor shape = at::empty(spec.global_shape, at::kDouble);
    reference.gradients[spec.fqn] = all.narrow(0, begin, shape.numel()).view(shape.sizes());
    begin += shape.numel();
  }
  return reference;
}

}  // namespace

const OneRank& reference_for(comm::World& world, const GradientCase& row) {
  static std::map<std::string, OneRank> known;  // by name
  const GradientCase one = alone(row);
  const std::string name = one.name();
  if (!known.contains(name)) known[name] = compute_reference(world, one);
  return known[name];
}

}  // namespace tessera::test
