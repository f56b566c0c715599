// SPDX-License-Identifier: Apache-2.0
// Device memory that a communicator of NCCL knows before it is used: buffers that peers read and
// write without copies of NCCL's own (windows of NCCL 2.27, symmetric memory).
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "call_log.hpp"
#include "nccl_handle.hpp"

namespace tessera::comm {

/// Pieces are kept until the end and used again for the same number of bytes.
class RegisteredMemory : public std::enable_shared_from_this<RegisteredMemory> {
 public:
  explicit RegisteredMemory(std::shared_ptr<NcclHandle> nccl) : nccl_(std::move(nccl)) {}
  RegisteredMemory(const RegisteredMemory&) = delete;

  /// A piece that is not in use; null: there is none of this size.
  std::shared_ptr<void> reuse(std::size_t bytes);
  /// Collective: all members give the same size. `make_room`: see Communicator. Throws
  /// Error(environment) where the GPU has too little memory, or NCCL is older than 2.27. `call` is
  /// the communicator's in the log.
  std::shared_ptr<void> add(std::size_t bytes, const std::function<void()>& make_room,
                            LoggedCall& call);
  /// Gives back the memory of all pieces that are not in use. After a failure, and where an
  /// exception is on its way, that is the end of the process's work.
  void end();

 private:
  struct Piece {
    void* data;
    void* window;
  };
  Piece make(std::size_t bytes);
  std::shared_ptr<void> lend(std::size_t bytes, const Piece& piece);
  void take_back(std::size_t bytes, const Piece& piece);

  const std::shared_ptr<NcclHandle> nccl_;
  std::mutex mutex_;
  std::map<std::size_t, std::vector<Piece>> free_;  ///< by bytes
};

}  // namespace tessera::comm
