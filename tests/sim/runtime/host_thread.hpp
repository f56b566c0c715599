// SPDX-License-Identifier: Apache-2.0
// What each thread of the host knows: what it has waited for itself, and what others had waited for
// when they handed on to it. Threads hand on by what synchronizes them; host_sync.cpp sees mutexes,
// condition variables, semaphores, barriers, and threads that begin and end.
#pragma once

#include <memory>

#include "clock.hpp"

namespace tessera::cudart {

class HostThread {
 public:
  /// The calling thread's. A stream's own thread knows nothing and takes over nothing: what its
  /// tasks follow is the stream's knowledge.
  static HostThread& current();

  const std::shared_ptr<const Clock>& knows() const { return knows_; }
  void waited(const Clock& clock);

  /// This thread lets go of `object`, at which threads meet, or takes it.
  void released(const void* object);
  void acquired(const void* object);

  /// This thread is a stream's.
  void serve_stream();
  bool serves_stream() const { return serves_stream_; }

  StreamTime time{
      "the host", {}, {}};  ///< of what the thread itself does to memory; guarded by the issue lock

 private:
  std::shared_ptr<const Clock> knows_ = std::make_shared<const Clock>();
  bool serves_stream_ = false;
};

/// While one lives, this thread is inside the double, whose own synchronization is no part of the
/// program.
class InsideDouble {
 public:
  InsideDouble();
  ~InsideDouble();
  InsideDouble(const InsideDouble&) = delete;
};

}  // namespace tessera::cudart
