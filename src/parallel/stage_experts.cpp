// What a stage does for mixtures of experts: where experts are, how often each was chosen, how that is evened out.
#include "tessera/model/routing.hpp"
#include "tessera/parallel/stage.hpp"
#include "tessera/parallel/tensor_parallel.hpp"

namespace tessera::parallel {

using mesh::Axis;

TensorParallel Stage::tensor_parallel() {
  const bool cut = mesh_.layout().experts_cut_by_tp();
  TensorParallel how{mesh_.along(Axis::tp), options_.sequence_parallel, options_.loss_parallel};
  how.chunks = {&how.tp, options_.token_chunks, options_.overlap_chunks, &weight_gradients_};
  if (exchange_) how.exchange = &*exchange_;
  how.experts_cut = cut;
  how.microbatch = cut ? &mesh_.along(Axis::cp) : &mesh_.along({Axis::cp, Axis::tp});
  return how;
}

void Stage::make_buffers() {
  const auto type = options_.precision.master == at::kDouble ? at::kDouble : at::kFloat;
  const auto options = at::TensorOptions(type).device(options_.device);
  buffers_.resize(model_.buffers.size());
  loads_.counts.resize(model_.mixtures.size());
  for (std::int64_t i = cells_.begin; i < cells_.end(); ++i) {
    const model::CellSpec& cell = model_.cells[static_cast<std::size_t>(i)];
    for (const int buffer : cell.buffers)
      buffers_[static_cast<std::size_t>(buffer)] =
          at::zeros(model_.buffers[static_cast<std::size_t>(buffer)].shape, options);
    for (std::size_t m = 0; m < model_.mixtures.size(); ++m)
      if (cell.name == model_.mixtures[m].name + ".router")
        loads_.counts[m] = at::zeros({model_.mixtures[m].experts}, options.dtype(at::kLong));
  }
}

std::vector<at::Tensor> Stage::balance_experts(bool update) {
  at::NoGradGuard no_grad;
  using enum Axis;
  const bool apart = !mesh_.layout().experts_cut_by_tp();  // each rank its own tokens
  comm::Communicator& all =
      apart ? mesh_.along({dp_replicate, dp_shard, cp, tp}) : mesh_.along({dp_replicate, dp_shard, cp});
  std::vector<at::Tensor> loads(model_.mixtures.size());
  for (std::size_t m = 0; m < model_.mixtures.size(); ++m) {
    at::Tensor& count = loads_.counts[m];
    if (!count.defined()) continue;
    loads[m] = all_reduced(count, all);
    count.zero_();
    const model::MixtureSpec& mixture = model_.mixtures[m];
    if (update && mixture.bias >= 0 && mixture.balance_rate > 0)
      model::balance_bias(buffers_[static_cast<std::size_t>(mixture.bias)], loads[m], mixture.balance_rate);
  }
  return loads;
}

}  // namespace tessera::parallel
