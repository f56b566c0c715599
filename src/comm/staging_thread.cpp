// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <future>

#include "compute_stream.hpp"
#include "staged_queue.hpp"

namespace tessera::comm {
namespace {

/// After a round in which nothing moved. The more there were, the longer: ranks may share cores.
void pause(int idle_rounds) {
  if (idle_rounds < 50) return std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::microseconds(std::min(idle_rounds, 200)));
}

}  // namespace

std::shared_ptr<StagingThread> StagingThread::get() {
  static std::mutex mutex;
  static std::weak_ptr<StagingThread> instance;
  const std::lock_guard lock(mutex);
  std::shared_ptr<StagingThread> thread = instance.lock();
  if (thread) return thread;
  int device = 0;
  check_cuda(cudaGetDevice(&device), "cudaGetDevice");
  thread = std::make_shared<StagingThread>(device);
  instance = thread;
  return thread;
}

StagingThread::StagingThread(int device)
    : thread_([this, device] {
        cudaSetDevice(device);
        work();
      }) {}

StagingThread::~StagingThread() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  posted_.notify_all();
  thread_.join();
}

void StagingThread::post(std::function<void()> command) {
  {
    const std::lock_guard lock(mutex_);
    commands_.push_back(std::move(command));
  }
  posted_.notify_all();
}

void StagingThread::run(const std::function<void()>& command) {
  std::promise<void> done;
  post([&] {
    try {
      command();
      done.set_value();
    } catch (...) {
      done.set_exception(std::current_exception());
    }
  });
  done.get_future().get();
}

void StagingThread::add(const void* owner, Step step) {
  steps_.emplace_back(owner, std::move(step));
}

void StagingThread::remove(const void* owner) {
  std::erase_if(steps_, [owner](const auto& step) { return step.first == owner; });
}

std::vector<std::function<void()>> StagingThread::take_commands(bool wait) {
  std::unique_lock lock(mutex_);
  if (wait) posted_.wait(lock, [this] { return stopping_ || !commands_.empty(); });
  return std::exchange(commands_, {});
}

void StagingThread::work() {
  bool idle = true;
  for (int rounds = 0;;) {
    const auto commands = take_commands(idle);
    if (idle && commands.empty()) return;  // none will come
    for (const auto& command : commands) command();
    idle = true;
    bool moved = false;
    for (const auto& [owner, step] : steps_) {
      const Progress progress = step();
      idle = idle && progress == Progress::idle;
      moved = moved || progress == Progress::moves;
    }
    rounds = moved ? 0 : rounds + 1;
    if (!idle && !moved) pause(rounds);
  }
}

}  // namespace tessera::comm
