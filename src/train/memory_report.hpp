// SPDX-License-Identifier: Apache-2.0
// What a job that runs out of a GPU's memory says.
#pragma once

#include <exception>
#include <optional>
#include <string>

#include "failed_allocation.hpp"
#include "tessera/base/error.hpp"
#include "tessera/comm/world.hpp"
#include "tessera/train/trainer.hpp"

namespace tessera::train {

/// "out of memory on this GPU in layers.14 backward: ...": bytes wanted and free, bytes by kind,
/// the planner's advice (memory_advice()), and which degree or place of weights would be enough.
/// `trainer`: null if it is not there yet.
std::string out_of_memory_report(const FailedAllocation& memory, Trainer* trainer);

/// Throws the report in the place of `error` where that is an allocation on a GPU that failed.
void throw_if_out_of_memory(const std::exception& error, Trainer* trainer);

/// The report of an allocation that has been held for too long (held_allocation()); nothing where
/// there is none.
std::optional<Error> held_allocation_error(Trainer* trainer);

class AllocationRetries {
 public:
  /// Warns, on each rank that it concerns, about the first allocation that had to be tried again.
  void warn_once(const comm::World& world, at::Device device);

 private:
  bool warned_ = false;
};

}  // namespace tessera::train
