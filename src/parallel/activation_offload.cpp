// SPDX-License-Identifier: Apache-2.0
#include "tessera/parallel/activation_offload.hpp"

#include <iterator>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/kernels/shapes.hpp"
#include "tessera/kernels/torch_internal.hpp"

namespace tessera::parallel {

using at::Tensor;

struct OffloadedPass {
  OffloadedPass() = default;
  OffloadedPass(const OffloadedPass&) = delete;
  OffloadedPass& operator=(const OffloadedPass&) = delete;
  /// Of a step that ends with an error, too.
  ~OffloadedPass() {
    if (whole.empty() && arriving.empty()) return;
    try {
      copied.hold_current();
    } catch (const std::exception&) {
      // the device has failed
    }
  }

  enum class Place : std::uint8_t { device_and_host, host, arriving, device } place = {};
  std::vector<Tensor> whole;     ///< the memory of what is kept, as vectors
  std::vector<Tensor> arriving;  ///< new memory for them
  Tensor host;                   ///< undefined where tensors have no values
  std::int64_t bytes = 0;
  std::int64_t host_bytes = 0;       ///< of `host`: as many or more
  kernels::SideStream::Mark copied;  ///< what was begun last
};

namespace {

using Place = OffloadedPass::Place;

/// Of parts in a buffer: as far as any type of element asks.
constexpr std::int64_t kAlignment = 64;

Tensor whole_of(const Tensor& kept) {
  const auto elements =
      static_cast<std::int64_t>(kernels::storage_bytes(kept)) / kept.element_size();
  return kept.detach().as_strided({elements}, {1}, 0);
}

std::int64_t place_bytes(const Tensor& whole) {
  const std::int64_t bytes = whole.numel() * whole.element_size();
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

/// Calls copy(tensor, its part of the host's buffer) for each; not where they have no values.
template <class Copy>
void each_part(const std::vector<Tensor>& tensors, const Tensor& host, const Copy& copy) {
  if (!host.defined()) return;
  std::int64_t begin = 0;
  for (const Tensor& tensor : tensors) {
    copy(tensor,
         host.narrow(0, begin, tensor.numel() * tensor.element_size()).view(tensor.scalar_type()));
    begin += place_bytes(tensor);
  }
}

}  // namespace

ActivationOffload::ActivationOffload(at::Device device) : device_(device), copies_(device) {}
ActivationOffload::~ActivationOffload() = default;

/// Copies in both directions follow each other on one stream: whoever gets a buffer writes it after
/// those who had it. Experts' rows differ from pass to pass: where none of the free buffers is
/// large enough, one is replaced by a larger one, so that there are never more than passes at once.
void ActivationOffload::take_buffer(OffloadedPass& pass) {
  const auto give = [&](auto free) {
    pass.host_bytes = free->first;
    pass.host = std::move(free->second);
    buffers_.erase(free);
  };
  if (const auto fits = buffers_.lower_bound(pass.bytes); fits != buffers_.end()) return give(fits);
  if (!buffers_.empty()) {
    give(std::prev(buffers_.end()));
    host_bytes_ -= pass.host_bytes;
  }
  pass.host = Tensor();
  pass.host_bytes = pass.bytes;
  host_bytes_ += pass.bytes;
  if (!kernels::shapes_alone(device_))
    pass.host = at::empty({pass.bytes}, at::TensorOptions(at::kByte).pinned_memory(true));
}

ActivationOffload::Pass ActivationOffload::send(std::vector<Tensor> kept) {
  at::NoGradGuard no_grad;
  free_last();
  if (kept.empty()) return nullptr;
  auto pass = std::make_shared<OffloadedPass>();
  for (const Tensor& tensor : kept) {
    pass->whole.push_back(whole_of(tensor));
    pass->bytes += place_bytes(pass->whole.back());
  }
  pass->place = Place::device_and_host;
  take_buffer(*pass);
  pass->copied = copies_.run([&] {
    each_part(pass->whole, pass->host,
              [](const Tensor& from, const Tensor& to) { to.copy_(from, /*non_blocking=*/true); });
  });
  last_ = pass;
  return pass;
}

void ActivationOffload::free_last() {
  const Pass pass = std::exchange(last_, nullptr);
  if (!pass) return;
  pass->copied.hold_current();
  for (const Tensor& tensor : pass->whole) kernels::release_storage(tensor);
  pass->place = Place::host;
}

void ActivationOffload::fetch(const Pass& pass) {
  if (!pass || pass->place == Place::arriving || pass->place == Place::device) return;
  at::NoGradGuard no_grad;
  if (pass->place == Place::device_and_host) {  // its backward follows at once
    TESSERA_EXPECT(pass == last_, "only the pass that was sent last is still on the device");
    last_ = nullptr;
    pass->place = Place::device;
  } else {
    for (const Tensor& tensor : pass->whole) pass->arriving.push_back(at::empty_like(tensor));
    pass->copied = copies_.run([&] {
      each_part(pass->arriving, pass->host, [](const Tensor& to, const Tensor& from) {
        to.copy_(from, /*non_blocking=*/true);
      });
    });
    pass->place = Place::arriving;
  }
  buffers_.emplace(pass->host_bytes, std::move(pass->host));
}

void ActivationOffload::hold_for(const Pass& pass) {
  if (!pass) return;
  fetch(pass);
  if (pass->place != Place::arriving) return;
  pass->copied.hold_current();
  for (std::size_t i = 0; i < pass->whole.size(); ++i)
    kernels::move_storage(pass->arriving[i], pass->whole[i]);
  pass->arriving.clear();
  pass->whole.clear();  // autograd frees it during backward
  pass->place = Place::device;
}

/// What never left is still being read.
void ActivationOffload::done_with(const Pass& pass) {
  if (!pass || pass->whole.empty()) return;
  pass->copied.hold_current();
  pass->whole.clear();
}

}  // namespace tessera::parallel
