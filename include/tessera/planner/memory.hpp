// SPDX-License-Identifier: Apache-2.0
// Bytes that a rank's allocator has handed out at its peak, by term.
#pragma once

#include <array>

#include "tessera/planner/machine.hpp"
#include "tessera/planner/stack.hpp"
#include "tessera/planner/workload.hpp"

namespace tessera::planner {

inline constexpr double kGiB = 1024.0 * 1024 * 1024;

struct Memory {
  double weights = 0;  ///< masters of the shard, or working weights that stay
  double gradients = 0;
  double optimizer = 0;
  double gathered = 0;     ///< FSDP: gathered units, whole gradients, buffers of reductions
  double activations = 0;  ///< kept for the backward, of all microbatches in flight
  double loss = 0;         ///< logits and what the loss makes of them
  double working = 0;      ///< of the block that runs: recomputed tensors, gradients, gathers
  double on_host = 0;      ///< activations that are not on the device meanwhile

  double total() const;  ///< on the device
};

struct MemoryTerm {
  const char* name;
  double Memory::*bytes;
};
inline constexpr std::array<MemoryTerm, 7> kMemoryTerms{{{"weights", &Memory::weights},
                                                         {"gradients", &Memory::gradients},
                                                         {"optimizer", &Memory::optimizer},
                                                         {"gathered", &Memory::gathered},
                                                         {"activations", &Memory::activations},
                                                         {"loss", &Memory::loss},
                                                         {"working", &Memory::working}}};

/// Of the rank that needs most. Activations are counted from what each kernel keeps for its
/// backward; how many microbatches are in flight follows from the schedule's action lists.
Memory memory_of(const Workload& work, const Stack& stack);
/// The same of one rank of the pipeline.
Memory memory_of(const Workload& work, const Stack& stack, schedule::PipelineRank rank);

/// Does it fit, with context, communicators' buffers and workspaces beside it?
bool fits(const Memory& memory, const Machine& machine);
/// The same of a lower bound.
bool may_fit(double least_bytes, const Machine& machine);
/// What a rank takes of the machine's memory beside that: CUDA's context, NCCL and libraries.
double runtime_bytes(const Machine& machine);

}  // namespace tessera::planner
