// SPDX-License-Identifier: Apache-2.0
// Every call of MPI goes through check_mpi(): a failure becomes an Error that names call, code,
// rank and axis.
#pragma once

#include <mpi.h>

#include <string>
#include <utility>

#include "call_log.hpp"

namespace tessera::comm {

/// Where a call was made: what messages name.
struct Place {
  MPI_Comm comm = MPI_COMM_NULL;
  int rank = 0;
  int size = 1;
  std::string axis;
  Members members;
};

/// Throws Error(communication) unless `code` is MPI_SUCCESS.
void check_mpi(int code, const char* call, const Place& place);

/// An MPI communicator that is freed with its owner (unless MPI is over, or `abandon` was called)
/// and returns its errors.
class MpiHandle {
 public:
  MpiHandle() = default;
  explicit MpiHandle(MPI_Comm comm) : comm_(comm) {
    if (comm_ != MPI_COMM_NULL) MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  }
  MpiHandle(MpiHandle&& other) noexcept : comm_(std::exchange(other.comm_, MPI_COMM_NULL)) {}
  MpiHandle& operator=(MpiHandle&& other) noexcept {
    std::swap(comm_, other.comm_);
    return *this;
  }
  ~MpiHandle();
  MPI_Comm get() const { return comm_; }
  /// After a failure: freeing is collective and might wait for a rank that never comes.
  void abandon() { comm_ = MPI_COMM_NULL; }

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
};

}  // namespace tessera::comm
