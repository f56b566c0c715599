// SPDX-License-Identifier: Apache-2.0
// Another process's device memory, read in place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "segment.hpp"

namespace tessera::sim::nccl {

/// One mapping for each pair of processes, shared by all communicators. In this process it is the
/// arena itself, which is only open to a thread that runs a task.
class PeerMemory {
 public:
  /// Throws std::runtime_error where the process cannot be reached.
  static std::shared_ptr<const PeerMemory> of(const Member& member);
  ~PeerMemory();
  PeerMemory(const PeerMemory&) = delete;
  const std::byte* at(std::uint64_t offset) const { return base_ + offset; }

 private:
  PeerMemory(const std::byte* base, std::size_t mapped) : base_(base), mapped_(mapped) {}
  const std::byte* base_;
  std::size_t mapped_;  ///< 0: not our mapping
};

/// Where in this process's arena `data` lies.
std::uint64_t offset_of(const void* data);

}  // namespace tessera::sim::nccl
