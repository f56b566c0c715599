// SPDX-License-Identifier: Apache-2.0
#include "tessera/parallel/kept_copy.hpp"

#include "tessera/kernels/torch_internal.hpp"

namespace tessera::parallel {

void KeptCopy::keep(bool wanted) {
  if (kept_ && !wanted) free();
  kept_ = wanted && weights_.defined();
}

bool KeptCopy::has_memory() const { return kept_ && kernels::storage_bytes(weights_) > 0; }

at::Tensor KeptCopy::to_write(const at::Tensor& weights) const {
  return has_memory() ? weights : at::Tensor();
}

void KeptCopy::refresh() {
  if (!kept_ || current_) return;
  const at::NoGradGuard no_grad;
  if (!has_memory())
    kernels::restore_storage(weights_,
                             static_cast<std::size_t>(weights_.numel()) * weights_.element_size());
  weights_.copy_(masters_);
  current_ = true;
}

void KeptCopy::free() {
  current_ = false;
  if (!has_memory()) return;
  kernels::release_storage(weights_);
  ++times_freed_;
}

}  // namespace tessera::parallel
