// SPDX-License-Identifier: Apache-2.0
#include "tessera/parallel/stage_experts.hpp"

#include "tessera/model/routing.hpp"
#include "tessera/parallel/tensor_parallel.hpp"

namespace tessera::parallel {

StageExperts::StageExperts(const model::ModelSpec& model, Range cells, mesh::DeviceMesh& mesh,
                           at::Device device, const plan::ExpertRows& rows)
    : model_(model), mesh_(mesh) {
  if (mesh.layout().expert_degree() > 1) exchange_.emplace(mesh.experts(), rows, device);
  loads_.counts.resize(model.mixtures.size());
  for (std::int64_t i = cells.begin; i < cells.end(); ++i) {
    const int mixture = model.cells[static_cast<std::size_t>(i)].mixture;
    if (mixture < 0) continue;
    const auto m = static_cast<std::size_t>(mixture);
    loads_.counts[m] =
        at::zeros({model.mixtures[m].experts}, at::TensorOptions(at::kLong).device(device));
  }
}

void StageExperts::send_fixed(bool fixed) {
  if (exchange_) exchange_->send_fixed(fixed);
}

void StageExperts::forget_step() {
  const at::NoGradGuard no_grad;
  if (exchange_) exchange_->overflows().zero_();
  for (at::Tensor& count : loads_.counts)
    if (count.defined()) count.zero_();
}

std::vector<at::Tensor> StageExperts::take_loads() {
  at::NoGradGuard no_grad;
  using enum mesh::Axis;
  const bool apart = !mesh_.layout().experts_cut_by_tp();  // each rank its own tokens
  comm::Communicator& all = apart ? mesh_.along({dp_replicate, dp_shard, cp, tp})
                                  : mesh_.along({dp_replicate, dp_shard, cp});
  std::vector<at::Tensor> loads(model_.mixtures.size());
  for (std::size_t m = 0; m < model_.mixtures.size(); ++m) {
    at::Tensor& count = loads_.counts[m];
    if (!count.defined()) continue;
    loads[m] = all_reduced(count, all);
    count.zero_();
  }
  return loads;
}

void StageExperts::balance(const std::vector<at::Tensor>& loads,
                           std::vector<at::Tensor>& buffers) const {
  at::NoGradGuard no_grad;
  for (std::size_t m = 0; m < model_.mixtures.size(); ++m) {
    const model::MixtureSpec& mixture = model_.mixtures[m];
    if (loads_.counts[m].defined() && mixture.bias >= 0 && mixture.balance_rate > 0)
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
