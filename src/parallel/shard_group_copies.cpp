// Groups whose masters and gradients are in host memory: copies that no computation waits for.
#include <utility>

#include "tessera/parallel/shard_group.hpp"

namespace tessera::parallel {

/// Masters come up on the side stream, and the gather follows them there: computation waits for its end alone.
void ShardGroup::upload() {
  const auto on_device = at::TensorOptions(options_.device);
  staged_ = at::empty({chunk_elements_}, on_device.dtype(options_.precision.master));
  const bool same = options_.precision.compute == options_.precision.master;
  gather_in_ = same ? staged_ : at::empty({chunk_elements_}, on_device.dtype(options_.precision.compute));
  if (fsdp_.size() > 1) gather_out_ = at::empty({fsdp_.size(), chunk_elements_}, gather_in_.options());
  uploaded_ = options_.copies->run([&] {
    at::NoGradGuard no_grad;
    staged_.copy_(flat_master_, /*non_blocking=*/true);
    if (!same) gather_in_.copy_(staged_);
    start_gather(fsdp_);
  });
}

/// Sends the reduced gradient down; nobody waits. The host adds it to others when the next one comes, or at the end.
void ShardGroup::land() {
  settle();
  if (reduced_ && !landing_.defined())
    landing_ = at::empty_like(flat_gradient_, flat_gradient_.options().pinned_memory(true));
  adds_landing_ = reduced_;
  landing_from_ = std::exchange(reduce_out_, at::Tensor()).to(options_.precision.master);
  landed_ = options_.copies->run([&] {
    at::NoGradGuard no_grad;
    (reduced_ ? landing_ : flat_gradient_).copy_(landing_from_, /*non_blocking=*/true);
  });
  landing_under_way_ = true;
}

/// Until the gradient is in host memory.
void ShardGroup::settle() {
  if (!landing_under_way_) return;
  landed_.wait();
  if (adds_landing_) flat_gradient_.add_(landing_);
  landing_from_ = at::Tensor();
  landing_under_way_ = false;
}

}  // namespace tessera::parallel
