// SPDX-License-Identifier: Apache-2.0
// Saving while training continues.
//
//   begin() plans and copies; threads write; poll(), once a step, agrees on how far all ranks are
//   and commits; the memory of the views may change as soon as begin() has returned or, with a
//   CopyEngine, as soon as that allows it.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>

#include "tessera/checkpoint/save.hpp"

namespace tessera::checkpoint {

/// Brings what is saved to host memory, where it comes from elsewhere: a GPU. The views of such a
/// save point into that memory.
struct CopyEngine {
  virtual ~CopyEngine() = default;
  /// Host memory for the copies of the save that begins; it stays as it is until the next call.
  virtual std::byte* reserve(std::size_t bytes) = 0;
  /// Begins a copy into it. The source must not change before it is done: the engine's owner sees
  /// to that.
  virtual void copy(std::byte* to, const void* from, std::size_t bytes) = 0;
  /// Returns when all that was begun is done; called on the thread that writes. Throws Error.
  virtual void wait() = 0;
};

/// Saves one checkpoint at a time. All methods but busy() are collective over `control` (host
/// memory), and every rank calls them at the same places; between them a thread of each rank
/// writes, and it does not communicate. A failure of any rank is the same Error on every rank, from
/// whichever call learns of it; then the partial folder is gone, older checkpoints are as before,
/// and the next save may begin. A process that ends between begin() and the result leaves the older
/// checkpoints and a partial folder that the next save removes.
class Saver {
 public:
  /// Without an engine the views' memory is the host's. The engine must outlive this.
  explicit Saver(comm::Communicator& control, CopyEngine* engine = nullptr);
  /// Waits for this rank's thread; a save that is in progress is dropped.
  ~Saver();

  /// Blocks until the checkpoint is on disk and visible under its name. Copies nothing, unless an
  /// engine does.
  SaveResult save(const SaveOptions& options, const State& state, std::span<const SliceView> views);

  /// Begins a save; none may be in progress. What this rank writes is copied into memory that the
  /// saver, or its engine, keeps for the next time: as many bytes as its part of the state.
  void begin(const SaveOptions& options, const State& state, std::span<const SliceView> views);
  /// Once a step: never waits for a disk. The result in the call that learns that the checkpoint is
  /// visible.
  std::optional<SaveResult> poll();
  /// Blocks until the save that is in progress is durable; nothing when there is none.
  std::optional<SaveResult> finish();
  bool busy() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tessera::checkpoint
