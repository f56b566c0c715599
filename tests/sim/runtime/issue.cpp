// SPDX-License-Identifier: Apache-2.0
#include "issue.hpp"

#include <cstring>
#include <optional>
#include <utility>

#include "capture.hpp"
#include "device_memory.hpp"
#include "pinned.hpp"

namespace tessera::cudart {
namespace {

std::uint64_t tasks_issued = 0;  ///< guarded by the issue lock

/// What the checker says to a task; the device fails with a race. Under the issue lock.
cudaError_t check(Stream& stream, const std::string& what, std::span<const sim::Access> accesses,
                  bool releases) {
  Runtime& runtime = Runtime::get();
  Device& device = runtime.device(stream.device());
  if (device.sticky() != cudaSuccess) return device.sticky();
  if (const sim::Settings::Failure& planned = sim::settings().failure;
      planned.task == ++tasks_issued) {
    device.fail(planned.error, what + " on " + stream.name() + " fails, as TESSERA_SIM_FAIL says");
    return device.sticky();
  }
  const auto race = runtime.races.issue(stream.time, what, accesses, releases);
  if (!race) return cudaSuccess;
  print_line(*race);
  device.fail(cudaErrorLaunchFailure, "the device fails because of this race");
  return cudaErrorLaunchFailure;
}

/// A task that runs where its caller stands, in its turn.
cudaError_t run(Stream& stream, const std::string& what, const sim::Work& work) {
  const Device& device = Runtime::get().device(stream.device());
  if (device.sticky() != cudaSuccess) return device.sticky();
  const sim::DeviceMemoryOpen open;
  const cudaError_t error = work();
  if (error != cudaSuccess)
    Runtime::get()
        .device(stream.device())
        .fail(error, what + " on " + stream.name() + ": " + cudaGetErrorString(error));
  return error;
}

/// Memory changes its owner: its bytes become 0xFF, at once where the stream is idle and operators
/// run at once.
cudaError_t poison(const char* what, const void* data, std::size_t bytes, Stream& stream) {
  const sim::Access access{data, bytes, true};
  const sim::Work work = [data, bytes] {
    std::memset(const_cast<void*>(data), 0xFF, bytes);
    return cudaSuccess;
  };
  std::optional<Stream::Turn> turn;
  {
    const std::lock_guard lock(Runtime::get().issue);
    if (stream.branch.of)
      return capture_step(stream, what, {&access, 1}, [what, data, bytes](Stream& at) {
        return poison(what, data, bytes, at);
      });
    if (const cudaError_t error = check(stream, what, {&access, 1}, true); error != cudaSuccess)
      return error;
    if (stream.is_own_thread() || (!sim::settings().queued_operators && stream.idle()))
      turn.emplace(stream);
    else
      stream.push({what, work});
  }
  if (!turn) return cudaSuccess;
  turn->wait(what);
  return run(stream, what, work);
}

}  // namespace

cudaError_t enqueue(Stream& stream, std::string what, std::span<const sim::Access> accesses,
                    sim::Work work) {
  if (stream.is_own_thread()) return run_at_once(stream, what, accesses, work);
  const std::lock_guard lock(Runtime::get().issue);
  if (stream.branch.of)
    return capture_step(stream, what, accesses,
                        [what, work, list = std::vector(accesses.begin(), accesses.end())](
                            Stream& at) { return enqueue(at, what, list, work); });
  if (const cudaError_t error = check(stream, what, accesses, false); error != cudaSuccess)
    return error;
  stream.push({std::move(what), std::move(work)});
  return cudaSuccess;
}

cudaError_t run_at_once(Stream& stream, const std::string& what,
                        std::span<const sim::Access> accesses, const sim::Work& work) {
  std::optional<Stream::Turn> turn;
  if (const cudaError_t error = refuse_captured(stream, what.c_str()); error != cudaSuccess)
    return error;
  {
    const std::lock_guard lock(Runtime::get().issue);
    if (const cudaError_t error = check(stream, what, accesses, false); error != cudaSuccess)
      return error;
    turn.emplace(stream);
  }
  turn->wait(what.c_str());
  return run(stream, what, work);
}

std::shared_ptr<Record> record(Stream& stream) {
  Runtime& runtime = Runtime::get();
  const std::lock_guard lock(runtime.issue);
  if (stream.branch.of) return stream.branch.of->record(stream.branch.number);
  auto record = std::make_shared<Record>(runtime.races.end_of(stream.time));
  if (stream.is_own_thread() || stream.idle()) {
    record->complete();
    return record;
  }
  stream.push({"cudaEventRecord",
               [record] {
                 record->complete();
                 return cudaSuccess;
               },
               true});
  return record;
}

namespace {

/// The edge of a capture, under the issue lock: an event leads into one, but never out of it.
cudaError_t wait_in_capture(Stream& stream, const CapturedEnd& end) {
  const std::shared_ptr<Capture>& capture = stream.branch.of;
  if (!end.exists)
    return capture->invalidate(cudaErrorStreamCaptureIsolation,
                               stream.name() + " is captured and waits for an event that is not");
  const std::shared_ptr<Capture> by = end.by.lock();
  if (!by || !by->is_in_progress()) return cudaErrorCapturedEvent;
  if (!capture && stream.is_default())
    return by->invalidate(cudaErrorStreamCaptureImplicit,
                          "the legacy stream waits for an event of a capture");
  if (!capture) by->join(stream);
  if (stream.branch.of != by)
    return capture->invalidate(cudaErrorStreamCaptureMerge,
                               stream.name() + " waits for an event of another capture");
  if (!by->is_valid()) return cudaErrorStreamCaptureInvalidated;
  by->wait(stream.branch.number, end);
  return cudaSuccess;
}

}  // namespace

cudaError_t wait(Stream& stream, const std::shared_ptr<Record>& record) {
  Runtime& runtime = Runtime::get();
  {
    const std::lock_guard lock(runtime.issue);
    if (stream.branch.of || record->captured().exists)
      return wait_in_capture(stream, record->captured());
    runtime.races.stream_waits(stream.time, record->known());
    if (record->is_complete()) return cudaSuccess;
    if (!stream.is_own_thread()) {
      stream.push({"cudaStreamWaitEvent",
                   [record] {
                     record->wait();
                     return cudaSuccess;
                   },
                   true});
      return cudaSuccess;
    }
  }
  record->wait();
  return cudaSuccess;
}

}  // namespace tessera::cudart

namespace tessera::sim {
namespace {

using cudart::Runtime;

/// Calls body(stream) where there are a device and the stream.
template <class Body>
cudaError_t on_stream(cudaStream_t handle, Body body) {
  if (const cudaError_t error = Runtime::unusable(); error != cudaSuccess) return error;
  const cudart::InsideDouble inside;
  if (Runtime::get().devices() == 0) return cudaErrorNoDevice;
  const auto stream = Runtime::get().find_stream(handle);
  return stream ? body(*stream) : cudaErrorInvalidResourceHandle;
}

/// The same for a block, which the framework frees on any thread: its default stream is that of the
/// memory's device.
template <class Body>
cudaError_t on_stream_of(const void* data, cudaStream_t handle, Body body) {
  if (Runtime::unusable() != cudaSuccess || handle != nullptr) return on_stream(handle, body);
  if (!is_device_pointer(data)) return cudaErrorInvalidValue;
  return body(*Runtime::get().device(cudart::DeviceMemory::get().device_of(data)).default_stream());
}

}  // namespace

cudaError_t enqueue(cudaStream_t stream, std::string what, std::span<const Access> accesses,
                    Work work) {
  return on_stream(stream, [&](cudart::Stream& s) {
    return cudart::enqueue(s, std::move(what), accesses, std::move(work));
  });
}

cudaError_t run_at_once(cudaStream_t stream, std::string what, std::span<const Access> accesses,
                        Work work) {
  return on_stream(stream,
                   [&](cudart::Stream& s) { return cudart::run_at_once(s, what, accesses, work); });
}

cudaError_t block_allocated(const void* data, std::size_t bytes, cudaStream_t stream) {
  return on_stream_of(data, stream, [&](cudart::Stream& s) {
    {
      const std::lock_guard lock(Runtime::get().issue);
      const auto begin = reinterpret_cast<std::uintptr_t>(data);
      Runtime::get().races.blocks().add({begin, begin + bytes});
    }
    return cudart::poison("allocation", data, bytes, s);
  });
}

cudaError_t block_freed(const void* data, std::size_t bytes, cudaStream_t stream) {
  return on_stream_of(data, stream,
                      [&](cudart::Stream& s) { return cudart::poison("free", data, bytes, s); });
}

void host_accesses(const std::string& what, const Access& access) {
  const cudart::InsideDouble inside;
  if (access.bytes == 0 || Runtime::unusable() != cudaSuccess || Runtime::get().devices() == 0)
    return;
  if (!is_device_pointer(access.data) && cudart::PinnedMemory::get().find(access.data).bytes == 0)
    return;
  Runtime& runtime = Runtime::get();
  std::optional<std::string> race;
  {
    cudart::StreamTime& host = cudart::HostThread::current().time;
    const std::lock_guard lock(runtime.issue);
    race = runtime.races.issue(host, what, {&access, 1});
    runtime.races.host_waited(host.known);
  }
  if (race) fail_device(cudaErrorLaunchFailure, *race);
}

std::vector<std::string> races() {
  const cudart::InsideDouble inside;
  const std::lock_guard lock(Runtime::get().issue);
  return Runtime::get().races.found();
}

void forget_races() {
  const cudart::InsideDouble inside;
  Runtime& runtime = Runtime::get();
  for (int d = 0; d < runtime.devices(); ++d) runtime.device(d).recover();
  const std::lock_guard lock(runtime.issue);
  runtime.races.forget_found();
}

}  // namespace tessera::sim
