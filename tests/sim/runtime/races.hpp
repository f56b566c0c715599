// SPDX-License-Identifier: Apache-2.0
// The happens-before checker. A task knows what came before it on its stream, what the stream has
// waited for and what the thread that issued it knew then (host_thread.hpp). An earlier access to
// the same bytes that it does not know, where one of both writes, is a race, whatever the timing
// (vector clocks: Lamport 1978, Mattern 1989; Serebryany and Iskhodzhanov 2009).
//
// Not synchronized: callers hold the issue lock (runtime.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "clock.hpp"
#include "history.hpp"
#include "host_thread.hpp"
#include "sim/sim.hpp"

namespace tessera::cudart {

/// Blocks of memory by address, so that reports can name them.
class Blocks {
 public:
  void add(Bytes bytes);
  void forget(Bytes bytes);
  /// The block around `address`.
  std::optional<Bytes> find(std::uintptr_t address) const;

 private:
  std::map<std::uintptr_t, std::uintptr_t> ends_;
};

class Races {
 public:
  /// A task that follows all earlier ones of `stream`. Returns what is to be said about a race.
  std::optional<std::string> issue(StreamTime& stream, const std::string& what,
                                   std::span<const sim::Access> accesses, bool releases = false);

  /// What waiters for `stream`'s present end will know.
  std::shared_ptr<const Clock> end_of(StreamTime& stream);
  void stream_waits(StreamTime& stream, const Clock& clock) { stream.known.merge(clock); }
  /// The calling thread has waited for `clock`.
  void host_waited(const Clock& clock);
  /// A query has seen `clock` done. That is luck, so it orders only the release of memory: who
  /// releases because of it would otherwise have kept the memory.
  void host_saw(const Clock& clock) { any_thread_.merge(clock); }
  /// The thread ends.
  void forget(HostThread& thread);
  /// Nobody uses these bytes any more.
  void forget(Bytes bytes);

  Blocks& blocks() { return blocks_; }
  /// `stream` issues no more.
  void retire(StreamTime& stream);

  const std::vector<std::string>& found() const { return found_; }
  void forget_found() { found_.clear(); }

 private:
  std::uint32_t new_slot();
  Mark mark(StreamTime& stream, const std::string& what);
  std::string describe(const Conflict& conflict, const Origin& later, bool writes) const;
  void forget_known();

  /// What each thread that has issued something knew when it did so last.
  std::unordered_map<const HostThread*, std::shared_ptr<const Clock>> issuers_;
  /// What any thread has waited for or seen done. It orders the release of memory: threads count
  /// references to memory in atomic variables, and the last of them knows what the others had
  /// waited for.
  Clock any_thread_;
  History history_;
  Blocks blocks_;
  std::vector<std::string> found_;
  std::uint32_t slots_ = 0;
  std::vector<Moment> retired_;  ///< last tasks of streams that are gone
  std::size_t sweep_at_ = 4096;  ///< ranges
};

}  // namespace tessera::cudart
