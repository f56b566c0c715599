// SPDX-License-Identifier: Apache-2.0
#include "mpi/train/one_rank.hpp"

#include <map>
#include <string>
#include <vector>

#include "mpi/train/from_rank_0.hpp"
#include "mpi/train/tiny_model.hpp"

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

namespace {

FirstStep compute_reference(comm::World& world, const GradientCase& row) {
  const std::vector<model::ParamSpec> params = model_of(row, at::kCPU).params;
  const std::vector<double> values = from_rank_0(world, [&] {
    const FirstStep found =
        first_step(job_of(row), model_of(row, at::kCPU), UnevenSource(), at::kCPU);
    std::vector<double> flat{found.loss, found.norm};
    for (const model::ParamSpec& spec : params) {
      const at::Tensor gradient = found.gradients.at(spec.fqn).contiguous();
      const double* data = gradient.const_data_ptr<double>();
      flat.insert(flat.end(), data, data + gradient.numel());
    }
    return flat;
  });
  FirstStep reference;
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

const FirstStep& reference_for(comm::World& world, const GradientCase& row) {
  static std::map<std::string, FirstStep> known;  // by name
  const GradientCase one = alone(row);
  const std::string name = one.name();
  if (!known.contains(name)) known[name] = compute_reference(world, one);
  return known[name];
}

}  // namespace tessera::test
