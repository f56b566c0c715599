// SPDX-License-Identifier: Apache-2.0
#include "tessera/kernels/host_copy.hpp"

#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "tessera/kernels/shapes.hpp"

namespace tessera::kernels {

HostCopy::HostCopy(const at::Tensor& values) : on_host_(values) {
  if (!values.defined() || values.is_cpu()) return;
  const at::NoGradGuard no_grad;
  if (shapes_alone(values.device())) {
    on_host_ = at::zeros(values.sizes(), values.options().device(at::kCPU));
    return;
  }
  on_host_ = at::empty(values.sizes(), values.options().device(at::kCPU).pinned_memory(true));
  on_host_.copy_(values, /*non_blocking=*/true);
  const at::Device device = values.device();
  copied_ = std::make_shared<c10::Event>(device.type());
  copied_->record(c10::impl::VirtualGuardImpl(device.type()).getStream(device));
}

const at::Tensor& HostCopy::wait() const {
  if (copied_) copied_->synchronize();
  return on_host_;
}

}  // namespace tessera::kernels
