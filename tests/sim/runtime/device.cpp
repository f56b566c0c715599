// SPDX-License-Identifier: Apache-2.0
#include "device.hpp"

#include <pthread.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <utility>

namespace tessera::cudart {
namespace {

constexpr auto longest_stop = std::chrono::seconds(5);

std::atomic<bool> stopped{false}, forked{false};
thread_local int device_of_thread = 0;

void stop_streams() {
  if (Runtime::unusable() != cudaSuccess) return;
  stopped = true;
  const auto deadline = std::chrono::steady_clock::now() + longest_stop;
  for (const auto& stream : Runtime::get().all_streams()) stream->stop(deadline);
}

}  // namespace

Device::Device(int index) : default_stream_(std::make_shared<Stream>(index, 0, 0)) {}

void Device::fail(cudaError_t error, const std::string& text) {
  cudaError_t none = cudaSuccess;
  if (sticky_.compare_exchange_strong(none, error)) print_line(text);
}

Runtime& Runtime::get() {
  static Runtime* const instance = new Runtime;
  return *instance;
}

Runtime::Runtime() {
  for (int d = 0; d < sim::settings().devices; ++d) devices_.push_back(std::make_unique<Device>(d));
  pthread_atfork(nullptr, nullptr, [] { forked = true; });
}

cudaError_t Runtime::unusable() {
  return forked ? cudaErrorInitializationError : stopped ? cudaErrorCudartUnloading : cudaSuccess;
}

Device& Runtime::current_device() { return device(cudart::current_device()); }

std::shared_ptr<Stream> Runtime::find_stream(cudaStream_t handle) {
  if (handle == nullptr || handle == cudaStreamLegacy) return current_device().default_stream();
  return streams_.find(handle);
}

cudaStream_t Runtime::add_stream(int priority) {
  return streams_.add(std::make_shared<Stream>(cudart::current_device(), ++last_number_, priority));
}

bool Runtime::remove_stream(cudaStream_t handle) {
  const auto stream = streams_.remove(handle);
  if (!stream) return false;
  const std::lock_guard lock(issue);
  races.retire(stream->time);
  stream->close();
  std::erase_if(closed_, [](const auto& gone) { return gone.expired(); });
  closed_.push_back(stream);
  return true;
}

std::vector<std::shared_ptr<Stream>> Runtime::all_streams() {
  auto all = streams_.all();
  for (const auto& device : devices_) all.push_back(device->default_stream());
  const std::lock_guard lock(issue);
  for (const auto& closed : closed_)
    if (auto stream = closed.lock()) all.push_back(std::move(stream));
  return all;
}

std::vector<std::shared_ptr<Stream>> Runtime::streams_of(int device) {
  auto all = all_streams();
  std::erase_if(all, [device](const auto& stream) { return stream->device() != device; });
  return all;
}

void Runtime::forget(HostThread& thread) {
  const std::lock_guard lock(issue);
  races.forget(thread);
}

int current_device() { return device_of_thread; }
void set_current_device(int device) { device_of_thread = device; }

void count_wait(const Clock& known, const char* what) {
  if (!HostThread::current().knows()->covers(known)) sim::count_work(sim::WorkKind::wait, what);
}

cudaError_t wait_for(Stream& stream, const char* what) {
  Runtime& runtime = Runtime::get();
  std::shared_ptr<const Clock> known;
  {
    const std::lock_guard lock(runtime.issue);
    known = runtime.races.end_of(stream.time);
  }
  count_wait(*known, what);
  stream.wait();
  const std::lock_guard lock(runtime.issue);
  runtime.races.host_waited(*known);
  return runtime.device(stream.device()).sticky();
}

cudaError_t wait_for_device(int device) {
  Runtime& runtime = Runtime::get();
  for (const auto& stream : runtime.streams_of(device)) wait_for(*stream, "device");
  return runtime.device(device).sticky();
}

void stop_streams_at_exit() { std::atexit(stop_streams); }

void print_line(const std::string& text) {
  const std::string line = "tessera-sim: " + text + "\n";
  static_cast<void>(!write(STDERR_FILENO, line.data(), line.size()));
}

}  // namespace tessera::cudart

namespace tessera::sim {

bool stopping() { return cudart::stopped; }

void fail_device(cudaError_t error, const std::string& text) {
  cudart::Runtime::get().current_device().fail(error, text);
}

}  // namespace tessera::sim
