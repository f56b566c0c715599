// SPDX-License-Identifier: Apache-2.0
#include "nccl_memory.hpp"

#include <utility>

#include "compute_stream.hpp"
#include "tessera/base/error.hpp"

namespace tessera::comm {

namespace {

/// Pages of 2 MiB, and what NCCL takes for the window.
constexpr std::size_t kBesideAPiece = std::size_t{64} << 20;

bool lacks(std::size_t bytes) {
  std::size_t free = 0, total = 0;
  check_cuda(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return free < bytes + kBesideAPiece;
}

}  // namespace

#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 0)

RegisteredMemory::Piece RegisteredMemory::make(std::size_t bytes) {
  void* data = nullptr;
  nccl_->enqueue("ncclMemAlloc", [&](ncclComm_t) { return ncclMemAlloc(&data, bytes); });
  ncclWindow_t window = nullptr;  // null after success, too, where NCCL registers nothing
  nccl_->enqueue("ncclCommWindowRegister", [&](ncclComm_t c) {
    return ncclCommWindowRegister(c, data, bytes, &window, NCCL_WIN_COLL_SYMMETRIC);
  });
  return {data, window};
}

void RegisteredMemory::end() {
  if (!nccl_->flushes()) return;
  const std::lock_guard lock(mutex_);
  for (const auto& [bytes, pieces] : std::exchange(free_, {}))
    for (const Piece& piece : pieces) {
      if (piece.window)
        nccl_->enqueue("ncclCommWindowDeregister", [&](ncclComm_t c) {
          return ncclCommWindowDeregister(c, static_cast<ncclWindow_t>(piece.window));
        });
      nccl_->enqueue("ncclMemFree", [&](ncclComm_t) { return ncclMemFree(piece.data); });
    }
}

#else

RegisteredMemory::Piece RegisteredMemory::make(std::size_t) {
  fail(ExitCode::environment,
       "registered buffers need NCCL 2.27, and this Tessera was built with {}.{}.{}", NCCL_MAJOR,
       NCCL_MINOR, NCCL_PATCH);
}

void RegisteredMemory::end() {}

#endif

std::shared_ptr<void> RegisteredMemory::add(std::size_t bytes,
                                            const std::function<void()>& make_room,
                                            LoggedCall& call) {
  call.waited_for();
  try {
    if (make_room && lacks(bytes)) make_room();
    const Piece piece = make(bytes);
    call.done();
    return lend(bytes, piece);
  } catch (...) {
    call.failed();
    throw;
  }
}

std::shared_ptr<void> RegisteredMemory::reuse(std::size_t bytes) {
  std::unique_lock lock(mutex_);
  std::vector<Piece>& pieces = free_[bytes];
  if (pieces.empty()) return nullptr;
  const Piece piece = pieces.back();
  pieces.pop_back();
  lock.unlock();
  return lend(bytes, piece);
}

std::shared_ptr<void> RegisteredMemory::lend(std::size_t bytes, const Piece& piece) {
  return {piece.data,
          [self = shared_from_this(), bytes, piece](void*) { self->take_back(bytes, piece); }};
}

void RegisteredMemory::take_back(std::size_t bytes, const Piece& piece) {
  const std::lock_guard lock(mutex_);
  free_[bytes].push_back(piece);
}

}  // namespace tessera::comm
