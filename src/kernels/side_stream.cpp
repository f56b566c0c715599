// SPDX-License-Identifier: Apache-2.0
#include "tessera/kernels/side_stream.hpp"

#include <ATen/Context.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "tessera/kernels/shapes.hpp"

namespace tessera::kernels {

struct SideStream::Stream {
  c10::Stream stream;
};

namespace {

c10::Stream current_stream(at::Device device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStream(device);
}

}  // namespace

void SideStream::Mark::hold_current() const {
  if (event_) event_->block(current_stream(device_));
}

void SideStream::Mark::wait() const {
  if (event_) event_->synchronize();
}

void SideStream::Mark::hand_over(const at::Tensor& tensor) const {
  if (!event_) return;
  hold_current();
  tensor.record_stream(current_stream(device_));
}

SideStream::SideStream(at::Device device) : device_(device) {
  if (device.is_cpu() || shapes_alone(device)) return;
  at::globalContext().lazyInitDevice(device.type());
  stream_ = std::make_unique<Stream>(
      Stream{c10::impl::VirtualGuardImpl(device.type())
                 .getStreamFromGlobalPool(device, /*isHighPriority=*/false)});
}

SideStream::~SideStream() = default;

SideStream::Mark SideStream::run(const std::function<void()>& work) {
  if (stream_) {
    c10::Event now(device_.type());
    now.record(current_stream(device_));
    now.block(stream_->stream);
  }
  return mark_behind(work);
}

SideStream::Mark SideStream::run_ahead(const std::function<void()>& work) {
  return mark_behind(work);
}

SideStream::Mark SideStream::mark_behind(const std::function<void()>& work) {
  Mark mark;
  if (!stream_) {
    work();
    return mark;
  }
  const c10::StreamGuard guard(stream_->stream);
  work();
  mark.device_ = device_;
  mark.event_ = std::make_shared<c10::Event>(device_.type());
  mark.event_->record(stream_->stream);
  return mark;
}

}  // namespace tessera::kernels
