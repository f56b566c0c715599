// SPDX-License-Identifier: Apache-2.0
// The devices of this process, and what calls of the CUDA runtime name by handles.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "event.hpp"
#include "races.hpp"
#include "stream.hpp"

namespace tessera::cudart {

class Device {
 public:
  explicit Device(int index);
  /// The first error of a task; from then on every call that uses the device returns it.
  cudaError_t sticky() const { return sticky_; }
  /// Prints `text` unless the device has failed before.
  void fail(cudaError_t error, const std::string& text);
  void recover() { sticky_ = cudaSuccess; }
  const std::shared_ptr<Stream>& default_stream() const { return default_stream_; }

 private:
  std::atomic<cudaError_t> sticky_{cudaSuccess};
  std::shared_ptr<Stream> default_stream_;
};

/// Objects by handle, so that a handle that is none is an error and no crash.
template <class Handle, class Object>
class Registry {
 public:
  Handle add(std::shared_ptr<Object> object) {
    const std::lock_guard lock(mutex_);
    const auto handle = reinterpret_cast<Handle>(object.get());
    objects_[handle] = std::move(object);
    return handle;
  }
  /// Null where there is none.
  std::shared_ptr<Object> find(Handle handle) {
    const std::lock_guard lock(mutex_);
    const auto found = objects_.find(handle);
    return found == objects_.end() ? nullptr : found->second;
  }
  std::shared_ptr<Object> remove(Handle handle) {
    std::shared_ptr<Object> object = find(handle);
    const std::lock_guard lock(mutex_);
    objects_.erase(handle);
    return object;
  }
  std::vector<std::shared_ptr<Object>> all() {
    const std::lock_guard lock(mutex_);
    std::vector<std::shared_ptr<Object>> objects;
    for (const auto& [handle, object] : objects_) objects.push_back(object);
    return objects;
  }

 private:
  std::mutex mutex_;
  std::unordered_map<Handle, std::shared_ptr<Object>> objects_;
};

/// Lives until the process ends: threads of streams may outlive every static object.
class Runtime {
 public:
  static Runtime& get();
  /// Why there is no device: the process ends, or is a child of one that used it.
  static cudaError_t unusable();

  int devices() const { return static_cast<int>(devices_.size()); }
  Device& device(int index) { return *devices_[static_cast<std::size_t>(index)]; }
  Device& current_device();

  /// Null handle: the current device's default stream. Null result: no such stream.
  std::shared_ptr<Stream> find_stream(cudaStream_t handle);
  cudaStream_t add_stream(int priority);
  bool remove_stream(cudaStream_t handle);
  /// With those that are destroyed and have tasks left.
  std::vector<std::shared_ptr<Stream>> streams_of(int device);
  std::vector<std::shared_ptr<Stream>> all_streams();

  /// A thread of the host ends.
  void forget(HostThread& thread);

  Registry<cudaEvent_t, Event> events;

  /// Held where a task takes its place in its stream, so that the checker sees the same order;
  /// taken before all other locks.
  std::mutex issue;
  Races races;

 private:
  Runtime();
  std::vector<std::unique_ptr<Device>> devices_;
  Registry<cudaStream_t, Stream> streams_;
  std::vector<std::weak_ptr<Stream>> closed_;  ///< guarded by the issue lock
  std::atomic<std::uint64_t> last_number_{0};
};

int current_device();
void set_current_device(int device);

/// The calling thread is about to wait for `known`: counts (sim/work_counts.hpp) unless it knows
/// all of it.
void count_wait(const Clock& known, const char* what);
/// Waits for a stream's tasks, which the host then knows. Returns the device's error. `what` names
/// the call that waits.
cudaError_t wait_for(Stream& stream, const char* what);
cudaError_t wait_for_device(int device);

/// Takes care that no task runs while static objects are destroyed that exist by now.
void stop_streams_at_exit();

/// Prints one line to stderr.
void print_line(const std::string& text);

}  // namespace tessera::cudart
