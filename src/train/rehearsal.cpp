// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/rehearsal.hpp"

#include "tessera/base/error.hpp"
#include "tessera/kernels/allocations.hpp"
#include "tessera/kernels/philox.hpp"
#include "tessera/plan/unknowns.hpp"
#include "tessera/train/setup.hpp"
#include "tessera/train/trainer.hpp"

namespace tessera::train {
namespace {

/// Tensors need no more in the second one. The resident size does: malloc's free memory is in
/// pieces then. It stays in later steps.
constexpr int kSteps = 2;

/// Samples of one document with tokens at random, whose labels all count.
class DrawnTokens final : public data::SampleSource {
 public:
  DrawnTokens(std::int64_t seq_len, std::int64_t vocab) : seq_len_(seq_len), vocab_(vocab) {}

  std::int64_t seq_len() const override { return seq_len_; }
  std::optional<std::int64_t> sample_limit() const override { return std::nullopt; }
  void read(std::int64_t sample, std::span<std::int32_t> inputs,
            std::span<std::int32_t> labels) const override {
    for (std::size_t t = 0; t < inputs.size(); ++t) inputs[t] = token(sample, t);
    for (std::size_t t = 0; t < labels.size(); ++t) labels[t] = token(sample, t + 1);
  }
  std::vector<std::int64_t> document_starts(std::int64_t) const override { return {0}; }

 private:
  std::int32_t token(std::int64_t sample, std::size_t position) const {
    const kernels::Philox random{0, static_cast<std::uint64_t>(sample)};
    return static_cast<std::int32_t>(random.block(position)[0] % vocab_);
  }

  std::int64_t seq_len_, vocab_;
};

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
