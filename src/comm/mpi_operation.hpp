// SPDX-License-Identifier: Apache-2.0
// One operation in progress over MPI: a set of transfers, then perhaps a local reduction, then
// perhaps more transfers.
#pragma once

#include <exception>
#include <functional>
#include <span>
#include <vector>

#include "call_log.hpp"
#include "mpi_call.hpp"
#include "scratch.hpp"
#include "tessera/comm/communicator.hpp"

namespace tessera::comm {

/// Host MPI makes progress only inside calls of MPI. An operation whose later stages send
/// (all_reduce) must therefore be driven by whatever this process waits for, or two ranks that wait
/// in different orders would wait forever: such operations are kept in a list of the process, and
/// every wait drives all of it.
class MpiOperation final : public Request::State {
 public:
  using Stage = std::function<void(MpiOperation&)>;

  MpiOperation(const Place& place, const CallInfo& info, Traffic* traffic,
               const LoggedCall& logged);
  MpiOperation(const MpiOperation&) = delete;
  ~MpiOperation() override;

  /// Start transfers of bytes with a peer; more than an int can count is cut. A received size that
  /// differs is an error.
  void send(const void* data, std::size_t bytes, int peer, int tag);
  void send_synchronously(const void* data, std::size_t bytes, int peer, int tag);
  void receive(void* data, std::size_t bytes, int peer, int tag);
  /// Takes a request of a non-blocking collective.
  void add(MPI_Request request, const char* call);
  /// `stage` runs once everything started so far has completed. `sends`: it starts transfers, so
  /// others must drive it.
  void then(Stage stage, bool sends = false);
  std::byte* scratch(std::size_t bytes);

  /// Tells the log that the caller is held from now on.
  void held() noexcept { logged_.waited_for(); }
  /// And that it continues while the operation is in progress.
  void let_go() noexcept { logged_.resumed(); }
  void wait() override;
  bool test() override;
  /// As wait(), but throws Error(communication) when it takes longer, and gives the transfers up.
  void wait_at_most(double seconds);
  const Place& place() const { return place_; }

 private:
  friend class Progress;
  void advance(bool block);  ///< completes transfers and runs the stages that became ready
  bool transfers_done(bool block);
  void check_sizes(const std::vector<MPI_Status>& statuses) const;
  [[noreturn]] void end_after_overflow(int source) const;
  void drive(bool block);
  void fail(std::exception_ptr error);
  void give_up();
  void finish();

  const Place& place_;
  Traffic* traffic_;
  LoggedCall logged_;
  CallInfo info_;
  std::vector<MPI_Request> requests_;
  std::vector<int> expected_bytes_;  ///< for each request; -1 where there is nothing to compare
  std::vector<Stage> stages_;
  std::vector<Scratch> scratch_;
  std::exception_ptr error_;
  const char* call_ = "MPI";
  bool driven_by_all_ = false;
  bool done_ = false;
};

}  // namespace tessera::comm
