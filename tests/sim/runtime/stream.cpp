// SPDX-License-Identifier: Apache-2.0
#include "stream.hpp"

#include <signal.h>

#include <chrono>
#include <exception>
#include <optional>
#include <thread>
#include <utility>

#include "device.hpp"
#include "guard.hpp"

namespace tessera::cudart {
namespace {

thread_local Stream* own_stream = nullptr;

/// Signals are for the program's own threads. Those that a fault raises cannot be blocked.
void block_signals() {
  sigset_t all;
  sigfillset(&all);
  for (int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS})
    sigdelset(&all, fault);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

std::string name_of(int device, std::uint64_t number) {
  std::string name = number == 0 ? "the default stream" : "stream " + std::to_string(number);
  if (sim::settings().devices > 1) name += " of device " + std::to_string(device);
  return name;
}

}  // namespace

Stream::Stream(int device, std::uint64_t number, int priority)
    : device_(device), priority_(priority), number_(number) {
  time.name = name_of(device, number);
}

std::uint64_t Stream::own_number() { return own_stream == nullptr ? 0 : own_stream->number_; }

bool Stream::is_own_thread() const { return own_stream == this; }

void Stream::push(Task task) {
  const std::lock_guard lock(mutex_);
  queue_.push_back(std::move(task));
  ++pushed_;
  if (!std::exchange(started_, true)) {
    sigset_t before;
    pthread_sigmask(SIG_SETMASK, nullptr, &before);
    block_signals();  // which the new thread inherits
    std::thread([self = shared_from_this()] { self->run(); }).detach();
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    stop_streams_at_exit();
  }
  changed_.notify_all();
}

void Stream::wait() {
  if (is_own_thread()) return;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this, all = pushed_] { return done_ >= all || sim::stopping(); });
}

bool Stream::idle() {
  const std::lock_guard lock(mutex_);
  return done_ == pushed_;
}

void Stream::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

void Stream::stop(std::chrono::steady_clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  changed_.notify_all();
  if (!is_own_thread()) changed_.wait_until(lock, deadline, [this] { return !running_; });
}

bool Stream::try_begin() {
  const std::lock_guard lock(mutex_);
  if (done_ != pushed_) return false;
  ++pushed_;
  running_ = true;
  return true;
}

void Stream::end() {
  const std::lock_guard lock(mutex_);
  ++done_;
  running_ = false;
  changed_.notify_all();
}

void Stream::run() {
  own_stream = this;
  HostThread::current().serve_stream();
  set_current_device(device_);
  for (Task task; next(task); end()) {
    execute(task);
    task = {};  // what it held is gone before anyone learns that it is done
  }
}

/// When the process ends this thread stays: what its queue holds may need objects that the process
/// has destroyed.
bool Stream::next(Task& task) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock,
                [this] { return !sim::stopping() && !running_ && (!queue_.empty() || closed_); });
  if (queue_.empty()) return false;
  task = std::move(queue_.front());
  queue_.pop_front();
  running_ = true;
  return true;
}

void Stream::execute(Task& task) {
  if (!task.always) sim::delay();
  Device& device = Runtime::get().device(device_);
  if (!task.always && device.sticky() != cudaSuccess) return;
  set_task_name(task.what.c_str());
  cudaError_t error = cudaErrorLaunchFailure;
  std::string why;
  try {
    std::optional<sim::DeviceMemoryOpen> open;
    if (!task.always) open.emplace();
    error = task.work();
    why = cudaGetErrorString(error);
  } catch (const std::exception& exception) {
    why = exception.what();
  }
  set_task_name(nullptr);
  if (error != cudaSuccess) device.fail(error, task.what + " on " + name() + ": " + why);
}

Stream::Turn::Turn(Stream& stream)
    : stream_(stream),
      before_(own_stream),
      task_before_(task_name()),
      nested_(stream.is_own_thread()) {
  if (nested_) return;
  at_once_ = stream.try_begin();
  if (at_once_) return;
  reached_ = std::make_shared<std::promise<void>>();
  over_ = std::make_shared<std::promise<void>>();
  const std::shared_future<void> over = over_->get_future();
  stream.push({"a turn of the host",
               [reached = reached_, over] {
                 reached->set_value();
                 over.wait();
                 return cudaSuccess;
               },
               true});
}

void Stream::Turn::wait(const char* what) {
  if (reached_) reached_->get_future().wait();
  own_stream = &stream_;
  set_task_name(what);
}

Stream::Turn::~Turn() {
  own_stream = before_;
  set_task_name(task_before_);
  if (nested_) return;
  if (at_once_)
    stream_.end();
  else
    over_->set_value();
}

}  // namespace tessera::cudart
