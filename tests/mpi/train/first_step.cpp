// SPDX-License-Identifier: Apache-2.0
#include "mpi/train/first_step.hpp"

#include "support/planned.hpp"
#include "tessera/mesh/device_mesh.hpp"
#include "tessera/train/trainer.hpp"

namespace tessera::test {

FirstStep first_step(const config::JobConfig& job, const model::Model& model,
                     const data::SampleSource& source, at::Device device) {
  const mesh::Layout layout = mesh::Layout::resolve({1, 1, 1, 1, 1}, 1);
  mesh::DeviceMesh mesh(layout, mesh::Rank(0));
  const plan::JobPlan plan = planned(job, model, layout);
  train::Trainer trainer(plan, model, mesh, source, device);
  trainer.stages().initialize(7);
  FirstStep result;
  trainer.compute();
  for (const auto* param : trainer.stages().params())
    result.gradients[param->spec->fqn] = param->gradient.to(at::kCPU, at::kDouble).clone();
  const train::StepOutcome outcome = trainer.apply();
  result.loss = outcome.loss;
  result.norm = outcome.grad_norm;
  return result;
}

}  // namespace tessera::test
