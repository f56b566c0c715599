// SPDX-License-Identifier: Apache-2.0
#include "gradient_landing.hpp"

namespace tessera::parallel {

void GradientLanding::send(const at::Tensor& reduced, const at::Tensor& flat, bool adds,
                           kernels::SideStream& copies) {
  settle(flat);
  if (adds && !beside_.defined())
    beside_ = at::empty_like(flat, flat.options().pinned_memory(true));
  adds_ = adds;
  from_ = reduced.to(flat.scalar_type());
  landed_ = copies.run([&] {
    at::NoGradGuard no_grad;
    (adds_ ? beside_ : flat).copy_(from_, /*non_blocking=*/true);
  });
  under_way_ = true;
}

void GradientLanding::settle(const at::Tensor& flat) {
  if (!under_way_) return;
  landed_.wait();
  if (adds_) flat.add_(beside_);
  from_ = at::Tensor();
  under_way_ = false;
}

}  // namespace tessera::parallel
