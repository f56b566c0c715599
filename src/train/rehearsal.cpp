// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/rehearsal.hpp"

#include "drawn_tokens.hpp"
#include "tessera/base/error.hpp"
#include "tessera/kernels/allocations.hpp"
#include "tessera/plan/unknowns.hpp"
#include "tessera/train/setup.hpp"
#include "tessera/train/trainer.hpp"

namespace tessera::train {
namespace {

/// Tensors need no more in the second one. The resident size does: malloc's free memory is in
/// pieces then. It stays in later steps.
constexpr int kSteps = 2;

}  // namespace

std::string why_not_rehearsed(const plan::JobPlan& plan) {
  const std::string measured = plan::measured_first(plan);
  return measured.empty() ? plan::uneven_experts(plan) : measured;
}

RehearsedMemory rehearse_memory(const plan::JobPlan& plan, mesh::Rank rank, at::Device device) {
  TESSERA_EXPECT(why_not_rehearsed(plan).empty(), "a rehearsal that tells nothing: {}",
                 why_not_rehearsed(plan));
  const kernels::Allocations counted(device.type());
  const model::Model model = model_of(plan, device);
  mesh::DeviceMesh mesh(plan.layout, rank);
  const DrawnTokens source(plan.data.seq_len, model.dimensions.vocab);
  Trainer trainer(plan, model, mesh, source, device);
  trainer.memory_peak().watch(true);
  trainer.stages().initialize(plan.run.seed);
  for (int step = 0; step < kSteps; ++step) trainer.step();
  RehearsedMemory memory{counted.peak(), trainer.memory_peak().kinds()};
  memory.kinds.activations = 0;
  memory.kinds.activations = std::max<std::int64_t>(0, memory.peak_bytes - memory.kinds.total());
  return memory;
}

}  // namespace tessera::train
