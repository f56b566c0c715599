// SPDX-License-Identifier: Apache-2.0
// Groups whose masters are in host memory: copies up that no computation waits for.
#include "tessera/parallel/shard_group.hpp"

namespace tessera::parallel {

/// Masters come up on the side stream, and the gather follows them there: computation waits for its
/// end alone.
void ShardGroup::upload() {
  const auto on_device = at::TensorOptions(options_.device);
  upload_.staged = at::empty({chunk_elements_}, on_device.dtype(options_.precision.master));
  const bool same = options_.precision.compute == options_.precision.master;
  gather_in_ = same ? upload_.staged
                    : at::empty({chunk_elements_}, on_device.dtype(options_.precision.compute));
  if (fsdp_.size() > 1)
    gather_out_ = at::empty({fsdp_.size(), chunk_elements_}, gather_in_.options());
  upload_.done = options_.copies->run([&] {
    at::NoGradGuard no_grad;
    upload_.staged.copy_(flat_master_, /*non_blocking=*/true);
    if (!same) gather_in_.copy_(upload_.staged);
    start_gather(fsdp_);
  });
}

}  // namespace tessera::parallel
