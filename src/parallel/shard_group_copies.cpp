// SPDX-License-Identifier: Apache-2.0
// Groups whose masters are in host memory: copies up that no computation waits for.
#include "tessera/parallel/shard_group.hpp"

namespace tessera::parallel {

/// Masters come up on the side stream, and the gather follows them there: computation waits for its
/// end alone.
void ShardGroup::upload() {
  const auto on_device = at::TensorOptions(options_.device);
  upload_.staged = at::empty({chunk_elements_}, on_device.dtype(options_.precision.master));
  register_gather(fsdp_);
  const bool registered = gather_.in.defined();
  const bool same =
      !registered && !options_.scales && options_.precision.compute == options_.precision.master;
  if (!registered)
    gather_.in = same ? upload_.staged.view(at::kByte)
                      : at::empty({chunk_bytes_}, on_device.dtype(at::kByte));
  if (!registered && fsdp_.size() > 1)
    gather_.out = at::empty({fsdp_.size(), chunk_bytes_}, gather_.in.options());
  upload_.done = options_.copies->run([&] {
    at::NoGradGuard no_grad;
    upload_.staged.copy_(flat_master_, /*non_blocking=*/true);
    if (!same) pack(upload_.staged, gather_.in);
    start_gather(fsdp_);
  });
}

}  // namespace tessera::parallel
