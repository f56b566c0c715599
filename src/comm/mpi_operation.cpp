// SPDX-License-Identifier: Apache-2.0
#include "mpi_operation.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "dropped_transfers.hpp"
#include "node.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/keep.hpp"
#include "tessera/base/log.hpp"

namespace tessera::comm {
namespace {

constexpr std::size_t kPiece_bytes = std::size_t{1} << 30;

bool is_overflow(int code) {
  int kind = MPI_SUCCESS;
  return code != MPI_SUCCESS && MPI_Error_class(code, &kind) == MPI_SUCCESS &&
         kind == MPI_ERR_TRUNCATE;
}

template <class Function>
void for_each_piece(std::size_t bytes, Function function) {
  std::size_t first = 0;
  do {
    const std::size_t piece = std::min(kPiece_bytes, bytes - first);
    function(first, static_cast<int>(piece));
    first += piece;
  } while (first < bytes);
}

/// Between two looks at an operation, where ranks share cores: at first the core goes to whoever
/// wants it. After 5 ms this thread sleeps, an eighth of the time that it has waited: a step's
/// usual waits are shorter (sleeping after 0.2 ms costs 17 % of the tokens/s of 8 ranks on 2 idle
/// cores).
void give_up_core(std::int64_t waited_ns) {
  constexpr std::int64_t kAwake_ns = 5'000'000, kLongest_ns = 1'000'000;
  if (waited_ns < kAwake_ns) return std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::nanoseconds(std::min(waited_ns / 8, kLongest_ns)));
}

}  // namespace

/// The operations of this process whose later stages send.
class Progress {
 public:
  static void add(MpiOperation* operation) {
    const std::lock_guard lock(mutex_);
    operations_.push_back(operation);
    count_.store(operations_.size(), std::memory_order_relaxed);
  }
  static void remove(MpiOperation* operation) {
    const std::lock_guard lock(mutex_);
    std::erase(operations_, operation);
    count_.store(operations_.size(), std::memory_order_relaxed);
  }
  static bool idle() { return count_.load(std::memory_order_relaxed) == 0; }
  static void drive_all() {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock) return std::this_thread::yield();
    for (MpiOperation* operation : operations_) operation->advance(false);
  }
  static bool done(const MpiOperation& operation) {
    const std::lock_guard lock(mutex_);
    return operation.done_;
  }
  /// Unless it has ended; another thread may be driving it.
  static void fail(MpiOperation& operation, std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    if (!operation.done_) operation.fail(std::move(error));
  }

 private:
  static inline std::mutex mutex_;
  static inline std::vector<MpiOperation*> operations_;
  static inline std::atomic<std::size_t> count_{0};
};

MpiOperation::MpiOperation(const Place& place, const CallInfo& info, Traffic* traffic,
                           const LoggedCall& logged)
    : place_(place), traffic_(traffic), logged_(logged), info_(info) {}

MpiOperation::~MpiOperation() {
  if (driven_by_all_) Progress::remove(this);
  if (done_) return;
  if (!requests_.empty()) note_dropped_transfers();
  give_up();
}

void MpiOperation::add(MPI_Request request, const char* call) {
  requests_.push_back(request);
  expected_bytes_.push_back(-1);
  call_ = call;
}

void MpiOperation::send(const void* data, std::size_t bytes, int peer, int tag) {
  for_each_piece(bytes, [&](std::size_t first, int piece) {
    MPI_Request request = MPI_REQUEST_NULL;
    check_mpi(MPI_Isend(static_cast<const std::byte*>(data) + first, piece, MPI_BYTE, peer, tag,
                        place_.comm, &request),
              "MPI_Isend", place_);
    add(request, "MPI_Isend");
  });
}

void MpiOperation::send_synchronously(const void* data, std::size_t bytes, int peer, int tag) {
  for_each_piece(bytes, [&](std::size_t first, int piece) {
    MPI_Request request = MPI_REQUEST_NULL;
    check_mpi(MPI_Issend(static_cast<const std::byte*>(data) + first, piece, MPI_BYTE, peer, tag,
                         place_.comm, &request),
              "MPI_Issend", place_);
    add(request, "MPI_Issend");
  });
}

void MpiOperation::receive(void* data, std::size_t bytes, int peer, int tag) {
  for_each_piece(bytes, [&](std::size_t first, int piece) {
    MPI_Request request = MPI_REQUEST_NULL;
    check_mpi(MPI_Irecv(static_cast<std::byte*>(data) + first, piece, MPI_BYTE, peer, tag,
                        place_.comm, &request),
              "MPI_Irecv", place_);
    add(request, "MPI_Irecv");
    expected_bytes_.back() = piece;
  });
}

void MpiOperation::then(Stage stage, bool sends) {
  stages_.push_back(std::move(stage));
  if (!sends || driven_by_all_) return;
  driven_by_all_ = true;
  Progress::add(this);
}

std::byte* MpiOperation::scratch(std::size_t bytes) {
  scratch_.emplace_back(bytes);
  return scratch_.back().data();
}

void MpiOperation::check_sizes(const std::vector<MPI_Status>& statuses) const {
  for (std::size_t i = 0; i < statuses.size(); ++i) {
    if (expected_bytes_[i] < 0) continue;
    int received = 0;
    MPI_Get_count(&statuses[i], MPI_BYTE, &received);
    require(received == expected_bytes_[i], ExitCode::communication,
            "{}: rank {} sent {} bytes where rank {} expects {} (axis {}); the ranks disagree on "
            "counts or order",
            describe(info_), statuses[i].MPI_SOURCE, received, place_.rank, expected_bytes_[i],
            place_.axis);
  }
}

/// Open MPI may have written beyond the buffer: nothing in this process is sound any more, and
/// destructors would find it.
void MpiOperation::end_after_overflow(int source) const {
  log::error(
      "{}: rank {} sent more than rank {} expects (axis {}); the ranks disagree on counts or "
      "order, and debug.check_collectives = true finds where",
      describe(info_), source, place_.rank, place_.axis);
  constexpr int kCode = static_cast<int>(ExitCode::communication);
  MPI_Abort(MPI_COMM_WORLD, kCode);
  std::_Exit(kCode);
}

bool MpiOperation::transfers_done(bool block) {
  if (requests_.empty()) return true;
  static thread_local std::vector<MPI_Status> statuses;
  statuses.resize(requests_.size());
  const int count = static_cast<int>(requests_.size());
  int completed = 1;
  const int code = block ? MPI_Waitall(count, requests_.data(), statuses.data())
                         : MPI_Testall(count, requests_.data(), &completed, statuses.data());
  if (code == MPI_ERR_IN_STATUS) {
    for (const MPI_Status& status : statuses) {
      if (is_overflow(status.MPI_ERROR)) end_after_overflow(status.MPI_SOURCE);
      if (status.MPI_ERROR != MPI_ERR_PENDING) check_mpi(status.MPI_ERROR, call_, place_);
    }
  }
  check_mpi(code, call_, place_);
  if (!completed) return false;
  check_sizes(statuses);
  requests_.clear();
  expected_bytes_.clear();
  return true;
}

void MpiOperation::advance(bool block) {
  if (done_) return;
  try {
    while (transfers_done(block)) {
      if (stages_.empty()) return finish();
      const Stage stage = std::move(stages_.front());
      stages_.erase(stages_.begin());
      stage(*this);
    }
  } catch (...) {
    fail(std::current_exception());
  }
}

void MpiOperation::fail(std::exception_ptr error) {
  error_ = std::move(error);
  give_up();
}

void MpiOperation::give_up() {
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    if (requests_[i] == MPI_REQUEST_NULL || expected_bytes_[i] < 0) continue;
    MPI_Cancel(&requests_[i]);
    MPI_Request_free(&requests_[i]);
  }
  // What cannot be cancelled may still use this memory until the job ends.
  if (!requests_.empty()) keep_for_ever(std::move(scratch_));
  done_ = true;
  logged_.failed();
}

void MpiOperation::finish() {
  done_ = true;
  scratch_.clear();
  logged_.done();
}

void MpiOperation::drive(bool block) {
  if (driven_by_all_) return Progress::drive_all();
  const bool alone = Progress::idle();
  if (!alone) Progress::drive_all();
  advance(block && alone);
}

void MpiOperation::wait() {
  const std::int64_t begin = now_ns();
  if (!test()) {
    logged_.waited_for();
    static const bool shares_cores = oversubscribed();
    while (!(driven_by_all_ ? Progress::done(*this) : done_)) {
      drive(!shares_cores);
      if (shares_cores) give_up_core(now_ns() - begin);
    }
  }
  traffic_->exposed_seconds += static_cast<double>(now_ns() - begin) * 1e-9;
  if (error_) std::rethrow_exception(error_);
}

void MpiOperation::wait_at_most(double seconds) {
  const std::int64_t begin = now_ns(), deadline = begin + static_cast<std::int64_t>(seconds * 1e9);
  logged_.waited_for();
  while (!test() && now_ns() < deadline) {
  }
  if (!test())
    Progress::fail(
        *this,
        std::make_exception_ptr(Error(
            ExitCode::communication,
            fmt::format("{} on axis {} (rank {} of {}) did not complete within {:g} s after all "
                        "members had joined it; another rank has failed; see its message",
                        describe(info_), place_.axis, place_.rank, place_.size, seconds))));
  wait();
}

bool MpiOperation::test() {
  drive(false);
  return driven_by_all_ ? Progress::done(*this) : done_;
}

}  // namespace tessera::comm
