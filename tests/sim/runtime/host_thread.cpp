// SPDX-License-Identifier: Apache-2.0
#include "host_thread.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <unordered_map>
#include <utility>

#include "device.hpp"
#include "sim/sim.hpp"

namespace tessera::cudart {
namespace {

using Knowledge = std::shared_ptr<const Clock>;

std::atomic<bool> anyone_has_waited{false};  ///< before, there is nothing to hand on
thread_local int depth_in_double = 0;

/// Whoever holds a part of the objects below makes no call that the program could see.
class SpinLock {
 public:
  void lock() {
    while (taken_.test_and_set(std::memory_order_acquire)) {
    }
  }
  void unlock() { taken_.clear(std::memory_order_release); }

 private:
  std::atomic_flag taken_ = ATOMIC_FLAG_INIT;
};

/// What was known to those who let go of each object, in parts so that threads seldom meet here.
struct Objects {
  SpinLock lock;
  std::unordered_map<const void*, Knowledge> known;
};

Objects& objects_with(const void* object) {
  constexpr int cache_line = 6;
  static auto& parts = *new std::array<Objects, 64>;
  return parts[(reinterpret_cast<std::uintptr_t>(object) >> cache_line) % parts.size()];
}

/// `known` with what `other` knows. Where one of both knows all that the other does, it is that
/// one, so that threads that have met share what they know until one of them waits again.
void merge(Knowledge& known, const Knowledge& other) {
  if (known == other || known->covers(*other)) return;
  if (other->covers(*known)) {
    known = other;
    return;
  }
  Clock both = *known;
  both.merge(*other);
  known = std::make_shared<const Clock>(std::move(both));
}

thread_local HostThread* own = nullptr;

/// Objects of the thread that end later may call once more: they find a new one, which stays.
struct AtThreadEnd {
  ~AtThreadEnd() {
    const InsideDouble inside;
    Runtime::get().forget(*own);
    delete std::exchange(own, nullptr);
  }
};

}  // namespace

HostThread& HostThread::current() {
  if (own == nullptr) {
    own = new HostThread;
    static thread_local const AtThreadEnd at_end;
  }
  return *own;
}

void HostThread::serve_stream() { serves_stream_ = true; }

void HostThread::waited(const Clock& clock) {
  if (serves_stream_ || knows_->covers(clock)) return;
  Clock both = *knows_;
  both.merge(clock);
  knows_ = std::make_shared<const Clock>(std::move(both));
  anyone_has_waited = true;
}

void HostThread::released(const void* object) {
  if (serves_stream_ || knows_->is_empty()) return;
  Objects& objects = objects_with(object);
  const std::lock_guard lock(objects.lock);
  Knowledge& known = objects.known[object];
  if (known == nullptr)
    known = knows_;
  else
    merge(known, knows_);
}

void HostThread::acquired(const void* object) {
  if (serves_stream_) return;
  Objects& objects = objects_with(object);
  const std::lock_guard lock(objects.lock);
  const auto found = objects.known.find(object);
  if (found != objects.known.end()) merge(knows_, found->second);
}

InsideDouble::InsideDouble() { ++depth_in_double; }
InsideDouble::~InsideDouble() { --depth_in_double; }

}  // namespace tessera::cudart

namespace tessera::sim {

using cudart::HostThread;

void released(const void* object) {
  if (cudart::anyone_has_waited && cudart::depth_in_double == 0)
    HostThread::current().released(object);
}

void acquired(const void* object) {
  if (cudart::anyone_has_waited && cudart::depth_in_double == 0)
    HostThread::current().acquired(object);
}

}  // namespace tessera::sim
