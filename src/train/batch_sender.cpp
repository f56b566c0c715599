// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/batch_sender.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/base/keep.hpp"

namespace tessera::train {

SharedByStreams::~SharedByStreams() {
  if (tensor_.defined() && tensor_.is_cuda() && std::uncaught_exceptions() > 0)
    keep_for_ever(std::move(tensor_));
}

/// One copy. CUDA reads pageable memory before it returns, and pinned memory later.
SentBatch BatchSender::send(Rows rows, std::int64_t first, bool pinned) {
  const std::int64_t inputs = std::ssize(rows.inputs), labels = std::ssize(rows.labels);
  const at::Tensor on_host = at::empty(
      {inputs + labels}, at::TensorOptions(at::kLong).pinned_memory(pinned && device_.is_cuda()));
  std::ranges::copy(rows.inputs, on_host.mutable_data_ptr<std::int64_t>());
  std::ranges::copy(rows.labels, on_host.mutable_data_ptr<std::int64_t>() + inputs);
  SentBatch sent{first, std::move(rows), {}, {}};
  sent.arrived = copies_.run_ahead(
      [&] { sent.ids = SharedByStreams(on_host.to(device_, /*non_blocking=*/true)); });
  return sent;
}

SentBatch BatchSender::take(const plan::BatchPlan& plan, std::int64_t first, std::int64_t end) {
  if (auto sent = std::exchange(next_, std::nullopt); sent && sent->first == first)
    return std::move(*sent);
  return send(ahead_.take(plan, first, end), first, plan.pinned);
}

void BatchSender::send_next(const plan::BatchPlan& plan, std::int64_t first, std::int64_t end) {
  if (device_.is_cpu() || first >= end) return;
  try {
    next_ = send(ahead_.take(plan, first, end), first, plan.pinned);
  } catch (const Error&) {
    next_.reset();  // take() reads the rows again, and throws it in their step
  }
}

Batch batch_of(const SentBatch& sent, const plan::BatchPlan& plan) {
  sent.arrived.hand_over(*sent.ids);
  return batch_of(sent.rows, *sent.ids, plan);
}

}  // namespace tessera::train
