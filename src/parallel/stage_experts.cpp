// SPDX-License-Identifier: Apache-2.0
#include "tessera/parallel/stage_experts.hpp"

#include "tessera/model/routing.hpp"
#include "tessera/parallel/tensor_parallel.hpp"

namespace tessera::parallel {

StageExperts::StageExperts(const model::ModelSpec& model, Range cells, mesh::DeviceMesh& mesh,
                           at::Device device, const plan::ExpertRows& rows)
    : model_(model), mesh_(mesh), mixtures_(model.mixtures_of(cells)) {
  if (mesh.layout().expert_degree() > 1) exchange_.emplace(mesh.experts(), rows, device);
  counts_ = at::zeros({model.experts_of(cells)}, at::TensorOptions(at::kLong).device(device));
  loads_.counts = by_mixture(counts_);
}

std::vector<at::Tensor> StageExperts::by_mixture(const at::Tensor& counts) const {
  std::vector<at::Tensor> parts(model_.mixtures.size());
  std::int64_t first = 0;
  for (const int mixture : mixtures_) {
    const auto m = static_cast<std::size_t>(mixture);
    parts[m] = counts.narrow(0, first, model_.mixtures[m].experts);
    first += model_.mixtures[m].experts;
  }
  return parts;
}

void StageExperts::send_fixed(bool fixed) {
  if (exchange_) exchange_->send_fixed(fixed);
}

void StageExperts::forget_step() {
  const at::NoGradGuard no_grad;
  if (exchange_) exchange_->overflows().zero_();
  counts_.zero_();
}

std::vector<at::Tensor> StageExperts::take_loads() {
  at::NoGradGuard no_grad;
  using enum mesh::Axis;
  const bool apart = !mesh_.layout().experts_cut_by_tp();  // each rank its own tokens
  comm::Communicator& all = apart ? mesh_.along({dp_replicate, dp_shard, cp, tp})
                                  : mesh_.along({dp_replicate, dp_shard, cp});
  if (mixtures_.empty()) return by_mixture(counts_);
  const at::Tensor sums = all_reduced(counts_, all);
  counts_.zero_();
  return by_mixture(sums);
}

void StageExperts::balance(const std::vector<at::Tensor>& loads,
                           std::vector<at::Tensor>& buffers) const {
  at::NoGradGuard no_grad;
  for (const int number : mixtures_) {
    const auto m = static_cast<std::size_t>(number);
    const model::MixtureSpec& mixture = model_.mixtures[m];
    if (mixture.bias >= 0 && mixture.balance_rate > 0)
      model::balance_bias(buffers[static_cast<std::size_t>(mixture.bias)], loads[m],
                          mixture.balance_rate);
  }
}

void StageExperts::add_loss(const at::Tensor& part) {
  if (!part.defined()) return;
  const at::NoGradGuard no_grad;
  if (!loss_.defined()) loss_ = at::zeros({}, part.options().dtype(at::kDouble));
  loss_.add_(part);
}

void StageExperts::begin_step(int microbatches) {
  if (loss_.defined()) loss_.zero_();
  loss_scale_ = 1.0 / static_cast<double>(microbatches * mesh_.layout().dp_degree());
}

}  // namespace tessera::parallel
