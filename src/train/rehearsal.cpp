// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/rehearsal.hpp"

#include "drawn_tokens.hpp"
#include "tessera/base/error.hpp"
#include "tessera/kernels/allocations.hpp"
#include "tessera/kernels/shapes.hpp"
#include "tessera/plan/unknowns.hpp"
#include "tessera/train/setup.hpp"
#include "tessera/train/trainer.hpp"

namespace tessera::train {
namespace {

/// Tensors need no more in the second one. The resident size does: malloc's free memory is in
/// pieces then. It stays in later steps.
int steps_on(at::Device device) { return kernels::shapes_alone(device) ? 1 : 2; }

}  // namespace

std::string why_not_rehearsed(const plan::JobPlan& plan, at::Device device) {
  if (std::string why = plan::measured_first(plan); !why.empty()) return why;
  if (kernels::shapes_alone(device) && plan.sharding.offload)
    return "training.enable_cpu_offload keeps masters in host memory, which would be allocated "
           "here";
  if (kernels::shapes_alone(device) && plan.arithmetic.deterministic)
    return "debug.deterministic adds in the order of ranks, in memory that is not counted here";
  return plan::uneven_experts(plan);
}

RehearsedMemory rehearse_memory(const plan::JobPlan& given, mesh::Rank rank, at::Device device) {
  TESSERA_EXPECT(why_not_rehearsed(given, device).empty(), "a rehearsal that tells nothing: {}",
                 why_not_rehearsed(given, device));
  plan::JobPlan plan = given;
  plan.device.graphs = false;  // which have the same tensors
  const kernels::Allocations counted(device.type());
  const model::Model model = model_of(plan, device);
  mesh::DeviceMesh mesh(plan.layout, rank);
  const DrawnTokens source(plan.data.seq_len, model.dimensions.vocab);
  Trainer trainer(plan, model, mesh, source, device);
  trainer.memory_peak().watch(true);
  if (!kernels::shapes_alone(device)) trainer.stages().initialize(plan.run.seed);
  for (int step = 0; step < steps_on(device); ++step) trainer.step();
  RehearsedMemory memory{counted.peak(), trainer.memory_peak().kinds()};
  memory.kinds.activations = 0;
  memory.kinds.activations = std::max<std::int64_t>(0, memory.peak_bytes - memory.kinds.total());
  return memory;
}

}  // namespace tessera::train
