// SPDX-License-Identifier: Apache-2.0
// One rank's end of a communicator: its members, how it waits for them, and how it ends.
#pragma once

#include <nccl.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "peer_memory.hpp"
#include "segment.hpp"

namespace tessera::sim::nccl {

/// What a caller asks of a new communicator.
struct Request {
  int rank = 0, size = 1, device = 0;
  bool blocking = true;
  const char* name = nullptr;  ///< kept as a pointer and read when a message needs it, as NCCL does
};

/// Why a call fails, where the text has not been told yet.
class Failure : public std::runtime_error {
 public:
  Failure(ncclResult_t result, const std::string& why) : std::runtime_error(why), result_(result) {}
  ncclResult_t result() const { return result_; }

 private:
  ncclResult_t result_;
};

enum class Life { made, finalized, aborted, destroyed };
const char* name_of(Life life);

/// Who is in a communicator: this rank, and the memory that all of its members share.
class Members {
 public:
  explicit Members(const Request& request) : request_(request) {}
  Members(const Members&) = delete;

  int rank() const { return request_.rank; }
  int size() const { return request_.size; }
  int device() const { return request_.device; }
  bool blocking() const { return request_.blocking; }
  /// "rank 1 of 4 of communicator tp"
  std::string place() const;
  /// "communicator tp"
  std::string title() const;

  /// What follows needs an open segment.
  bool is_open() const { return open_; }
  Segment& segment() const { return **segment_; }
  Slot& slot(int rank) const { return segment().slots[static_cast<std::size_t>(rank)]; }
  Slot& mine() const { return slot(rank()); }
  /// Bytes of a member's device memory.
  const std::byte* memory(int rank, std::uint64_t offset) const {
    return memories_[static_cast<std::size_t>(rank)]->at(offset);
  }
  void ring(int rank) const { slot(rank).bell.ring(); }
  void ring_all() const;

 protected:
  void open(SharedSegment segment);
  void map_memory_of(int rank) { memories_.push_back(PeerMemory::of(slot(rank).member)); }

 private:
  std::string name() const;

  const Request request_;
  std::optional<SharedSegment> segment_;
  std::vector<std::shared_ptr<const PeerMemory>> memories_;
  std::atomic<bool> open_{false};
};

/// How one rank joins the others, waits for them, fails and ends.
class Communicator : public Members {
 public:
  using Members::Members;

  /// Collective over all who open the same segment; returns once all members have. `ids` is the
  /// hash of all ids that the caller was given. Throws Failure for broken rules, std::runtime_error
  /// for peers that cannot be reached.
  void join(SharedSegment segment, std::uint64_t ids);

  /// Waits until `ready`, which is called again and again on this thread. False: this rank has
  /// aborted the communicator, a member has broken a rule, or the process ends.
  template <class Ready>
  bool await(Ready ready) {
    for (int looks = 0;; ++looks) {
      const std::uint32_t heard = mine().bell.heard();
      if (ready()) return true;
      if (stopped()) return false;
      if (looks < kLooks)
        std::this_thread::yield();
      else
        mine().bell.sleep(heard);
    }
  }
  /// Returns once every member is here for the same time; false as await().
  bool meet_on_device() { return meet(segment().device_arrivals, device_meetings_); }
  bool meet_on_host() { return meet(segment().host_arrivals, host_meetings_); }

  /// ncclSuccess, ncclInProgress, or what has gone wrong: final.
  ncclResult_t state() const { return state_; }
  void set_state(ncclResult_t state);
  /// A rule is broken: no member goes on, and each of them knows why. Tells it unless another
  /// member has.
  void break_rule(const std::string& why);
  /// This rank goes on no more.
  void fail(ncclResult_t error, const std::string& why);
  /// Aborted, or failed through any member, or the process ends.
  bool stopped();
  /// Why state() is a failure.
  std::string reason() const;
  /// Throws why this rank does not go on. Call it after await() or a meeting that returned false.
  [[noreturn]] void throw_reason();
  /// What an operation does after a failure: on a GPU it would spin until the communicator is
  /// aborted.
  void hold_until_aborted();

  Life life() const { return life_; }
  void end(Life life) { life_ = life; }
  void abort();

  /// Launches are numbered from 1; the streams run them in this order, whichever they are.
  std::uint64_t next_launch() { return ++launched_; }
  bool is_turn_of(std::uint64_t launch) const { return completed_ + 1 == launch; }
  void complete_launch();
  bool idle() const { return completed_ >= launched_; }

  /// How many collectives and transfers this rank has launched; under the launch lock.
  std::uint64_t collectives = 0;
  std::vector<std::uint64_t> sends, receives;  ///< by peer
  /// Each graph that has operations of this rank holds it, too.
  std::shared_ptr<void> in_graphs = std::make_shared<char>();

 private:
  static constexpr int kLooks = 50;  ///< before it sleeps: two cores may serve eight ranks
  bool meet(std::atomic<std::uint64_t>& arrivals, std::uint64_t& meetings);
  void enter(std::uint64_t ids);
  void compare_members();

  std::atomic<bool> aborted_{false};
  std::atomic<ncclResult_t> state_{ncclSuccess};
  std::atomic<Life> life_{Life::made};
  std::atomic<std::uint64_t> launched_{0}, completed_{0};
  std::uint64_t device_meetings_ = 0, host_meetings_ = 0;
};

}  // namespace tessera::sim::nccl
