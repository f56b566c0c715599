// SPDX-License-Identifier: Apache-2.0
// The job's ranks: MPI's life, node-local ranks, the watchdog. Made once, in app.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/comm/communicator.hpp"

namespace tessera::comm {

/// Which back end carries the mesh's axes. `strict` runs over MPI and keeps NCCL's rules.
enum class Backend : std::uint8_t { mpi, strict, nccl };

/// MPI_COMM_WORLD's duplicate and what is known about the machine. Initialises MPI with
/// MPI_THREAD_MULTIPLE (less is refused with a message) and finalises it in the destructor. A
/// process makes one, and does not call MPI_Init itself: Error(environment).
class World {
 public:
  /// Before MPI_Init it sets OMPI_MCA_mpi_yield_when_idle=1 when this node has more ranks than
  /// cores. During MPI_Init it sets OMPI_MCA_mtl where all ranks are known to run on this node. In
  /// a process without a launcher, it sets OMPI_MCA_ess_singleton_isolated and
  /// OMPI_MCA_orte_create_session_dirs (reference/environment.md).
  World(int* argc, char*** argv);
  ~World();
  World(const World&) = delete;

  int rank() const;
  int size() const;
  int local_rank() const;  ///< among the ranks of this node (shared-memory split)
  int local_size() const;
  const std::string& host() const;
  /// Host communicator over all ranks: configuration, checkpoints, control flow.
  Communicator& control();
  /// A communicator over all ranks with the chosen back end: the root that the mesh splits. `nccl`
  /// moves device memory alone, the others move `memory`. Device memory needs a device to be chosen
  /// first and a build with TESSERA_WITH_CUDA, `nccl` one with TESSERA_WITH_NCCL, else
  /// Error(environment).
  std::unique_ptr<Communicator> make(Backend backend, const std::string& axis,
                                     Memory memory = Memory::host);
  /// Ends the job on all ranks with this code (MPI_Abort); does not return.
  [[noreturn]] void abort(int code);
  /// "Open MPI 4.1.4 (MPI 3.1)" and the like, for --version and run records.
  static std::string library_version();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Watches the calls of every communicator of this process: if one operation is pending for longer
/// than `timeout` (on the host: holds its caller; on a device: has been started), the handler gets
/// a report that names rank, axis, call, sequence number, sizes, and what the other local ranks
/// last did. Handler runs on the watchdog's thread, once for each such operation, and at once for a
/// failed device or device communicator. One per process.
class Watchdog {
 public:
  /// Its code: communication for what hangs; else that of the failure.
  using Handler = std::function<void(const Error& report)>;
  /// What else may be done, on the same thread.
  struct Also {
    /// `notice` is called once for an operation that is pending for this long, before the timeout.
    std::chrono::milliseconds notice_after{0};
    Handler notice = {};
    /// a rank of another node asks for those of all ranks of this node
    std::function<void()> leave_traces = {};
    /// called every second or so: what else has failed
    std::function<std::optional<Error>()> look = {};
  };
  Watchdog(std::chrono::milliseconds timeout, int rank, Handler handler);
  Watchdog(std::chrono::milliseconds timeout, int rank, Handler handler, Also also);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  /// Called by the trainer at each step: proof of life outside communication, and the step number
  /// for reports.
  static void heartbeat(std::int64_t step);
  /// Where this rank is in its step, for reports: "layers.14", "backward". Costs a few stores;
  /// keeps 47 characters.
  static void at(std::string_view unit, std::string_view pass) noexcept;
  /// "layers.14 backward"; empty before the first call of at().
  static std::string place();
  /// The rank may be elsewhere while one lives. Its end gives reports the place of its start, but
  /// where an exception passes: that is from the other place.
  class Detour {
   public:
    Detour();
    ~Detour();
    Detour(const Detour&) = delete;

   private:
    int exceptions_;
    std::string unit_, pass_;
  };
  /// What leave_traces_everywhere() came to: this rank had all nodes leave theirs; some did not in
  /// time; or another rank of this node is doing the same, and this one has done nothing.
  enum class Traces : std::uint8_t { all, some, by_another };
  /// In a handler: calls `leave`, which leaves the traces of this node's ranks, and has a rank of
  /// each other node do so, too. Waits for them, at most for `deadline`. Of ranks that hang at the
  /// same time, one of each node does it.
  static Traces leave_traces_everywhere(const std::function<void()>& leave,
                                        std::chrono::milliseconds deadline);
  /// While one lives, a call of this process may take so long where that is longer than the
  /// watchdog's own timeout: ranks wait in a collective while one of them saves to a slow file
  /// system.
  class Patience {
   public:
    explicit Patience(std::chrono::milliseconds timeout);
    ~Patience();
    Patience(const Patience&) = delete;

   private:
    std::int64_t before_ns_;
  };
  /// Human-readable list of this rank's last calls (at most 100), newest last.
  static std::string recent_calls();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Compares sequence number, call, dtype and count across the members before each collective, and
/// the transfers of a group with each peer's (debug.check_collectives). A mismatch throws
/// Error(communication) that names the ranks that differ and what each of them called; so does,
/// after TESSERA_STRICT_TIMEOUT_SECONDS (or a Watchdog::Patience that is longer), a rank that does
/// not come, and for whom it waits in turn.
void set_check_collectives(bool enabled);

}  // namespace tessera::comm
