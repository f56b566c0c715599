// SPDX-License-Identifier: Apache-2.0
// Copies. Pageable memory belongs to the host: it is read when the copy is issued, and written
// before the call returns.
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "calls.hpp"
#include "capture.hpp"
#include "copy_counts.hpp"
#include "device_memory.hpp"
#include "issue.hpp"
#include "pinned.hpp"

using namespace tessera::cudart;

namespace {

constexpr const char* copy_name = "memcpy";

enum class Place { device, pinned, pageable, invalid };

/// Where all of these bytes lie.
Place place_of(const void* data, std::size_t bytes) {
  const auto holds = [&](const Allocation& around) {
    return static_cast<const std::byte*>(data) + bytes <= around.data + around.bytes;
  };
  if (tessera::sim::is_device_pointer(data)) {
    const Allocation around = DeviceMemory::get().find(data);
    return around.bytes > 0 && holds(around) ? Place::device : Place::invalid;
  }
  const Allocation around = PinnedMemory::get().find(data);
  if (around.bytes == 0) return Place::pageable;
  return holds(around) ? Place::pinned : Place::invalid;
}

bool fits(cudaMemcpyKind kind, bool to_device, bool from_device) {
  switch (kind) {
    case cudaMemcpyHostToHost:
      return !to_device && !from_device;
    case cudaMemcpyHostToDevice:
      return to_device && !from_device;
    case cudaMemcpyDeviceToHost:
      return !to_device && from_device;
    case cudaMemcpyDeviceToDevice:
      return to_device && from_device;
    default:
      return kind == cudaMemcpyDefault;
  }
}

struct Copy {
  void* to;
  const void* from;
  std::size_t bytes;
  Place to_place, from_place;

  std::vector<tessera::sim::Access> accesses() const {
    std::vector<tessera::sim::Access> list;
    if (from_place != Place::pageable) list.push_back({from, bytes, false});
    if (to_place != Place::pageable) list.push_back({to, bytes, true});
    return list;
  }
  /// Host to host is a copy of the host's, too.
  bool holds_caller() const {
    return to_place == Place::pageable ||
           (to_place != Place::device && from_place != Place::device);
  }
};

tessera::sim::Work work_of(const Copy& copy, const std::byte* staged) {
  const void* from = staged != nullptr ? staged : copy.from;
  return [to = copy.to, from, bytes = copy.bytes] {
    std::memmove(to, from, bytes);
    return cudaSuccess;
  };
}

cudaError_t run_and_wait(Stream& stream, const Copy& copy) {
  const cudaError_t error = run_at_once(stream, copy_name, copy.accesses(), work_of(copy, nullptr));
  return error != cudaSuccess ? error : wait_for(stream, copy_name);
}

cudaError_t stage_and_enqueue(Stream& stream, const Copy& copy) {
  auto staged = std::make_shared<std::vector<std::byte>>(copy.bytes);
  std::memcpy(staged->data(), copy.from, copy.bytes);
  return enqueue(stream, copy_name, copy.accesses(),
                 [staged, work = work_of(copy, staged->data())] { return work(); });
}

cudaError_t issue_copy(Stream& stream, void* to, const void* from, std::size_t bytes,
                       cudaMemcpyKind kind, bool synchronous) {
  if (bytes == 0) return cudaSuccess;
  const Copy copy{to, from, bytes, place_of(to, bytes), place_of(from, bytes)};
  if (copy.to_place == Place::invalid || copy.from_place == Place::invalid)
    return cudaErrorInvalidValue;
  const bool to_device = copy.to_place == Place::device,
             from_device = copy.from_place == Place::device;
  if (!fits(kind, to_device, from_device)) return cudaErrorInvalidMemcpyDirection;
  const bool within_device = to_device && from_device;
  const bool across = to_device != from_device, pageable = copy.from_place == Place::pageable;
  if (across) tessera::sim::count_work(tessera::sim::WorkKind::copy, copy_name);
  if (within_device) tessera::sim::count_work(tessera::sim::WorkKind::launch, copy_name);
  if (across)
    ++(copy.holds_caller() || synchronous || pageable ? held_callers : asynchronous_copies);
  if (copy.holds_caller() || (synchronous && !within_device && copy.from_place != Place::pageable))
    return run_and_wait(stream, copy);
  if (copy.from_place == Place::pageable) {
    const cudaError_t refused = refuse_captured(stream, "a copy of pageable memory");
    return refused == cudaSuccess ? stage_and_enqueue(stream, copy) : refused;
  }
  return enqueue(stream, copy_name, copy.accesses(), work_of(copy, nullptr));
}

cudaError_t issue_memset(Stream& stream, void* data, int value, std::size_t bytes) {
  if (bytes == 0) return cudaSuccess;
  const Place place = place_of(data, bytes);
  if (place != Place::device && place != Place::pinned) return cudaErrorInvalidValue;
  tessera::sim::count_work(tessera::sim::WorkKind::launch, "memset");
  const tessera::sim::Access access{data, bytes, true};
  return enqueue(stream, "memset", {&access, 1}, [=] {
    std::memset(data, value, bytes);
    return cudaSuccess;
  });
}

}  // namespace

tessera::sim::CopyCounts tessera::sim::copy_counts() { return {asynchronous_copies, held_callers}; }

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t handle) {
  return stream_call(handle, [&](Runtime&, Stream& stream) {
    return issue_copy(stream, to, from, bytes, kind, false);
  });
}

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  return stream_call(nullptr, [&](Runtime&, Stream& stream) {
    const cudaError_t error = unsafe_call("cudaMemcpy");
    return error == cudaSuccess ? issue_copy(stream, to, from, bytes, kind, true) : error;
  });
}

/// Through the host, in the real thing: no device can access another's memory.
cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, std::size_t bytes,
                                cudaStream_t stream) {
  return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream);
}

cudaError_t cudaMemsetAsync(void* data, int value, std::size_t bytes, cudaStream_t handle) {
  return stream_call(
      handle, [&](Runtime&, Stream& stream) { return issue_memset(stream, data, value, bytes); });
}

cudaError_t cudaMemset(void* data, int value, std::size_t bytes) {
  return cudaMemsetAsync(data, value, bytes, nullptr);
}
