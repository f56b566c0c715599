// SPDX-License-Identifier: Apache-2.0
#include "memory_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iostream>
#include <utility>
#include <vector>

#include "tessera/base/out_of_memory.hpp"
#include "tessera/metrics/human.hpp"
#include "tessera/train/device.hpp"

namespace tessera::train {
namespace {

using mesh::Axis;
using metrics::human_bytes;

/// What the planner's search does not try, because it needs more ranks or the host's memory, and
/// wins `missing` bytes: weights, gradients and moments shrink with the ranks that share them.
std::vector<std::string> elsewhere(Trainer& trainer, const parallel::MemoryKinds& kinds,
                                   std::int64_t missing) {
  std::vector<std::string> out;
  const int degree = trainer.mesh().layout().degree(Axis::dp_shard);
  for (const int times : {2, 4, 8}) {
    if (kinds.state() - kinds.state() / times < missing) continue;
    out.push_back(
        fmt::format("parallelism.data_parallel_shard_degree = {} (now {}), on {} times as many "
                    "ranks",
                    degree * times, degree, times));
    break;
  }
  if (!trainer.plan().sharding.offload && kinds.state() >= missing)
    out.emplace_back("training.enable_cpu_offload = true");
  return out;
}

}  // namespace

std::string out_of_memory_report(const FailedAllocation& memory, Trainer* trainer) {
  std::string text =
      "out of memory on this GPU" + (memory.place.empty() ? "" : " in " + memory.place);
  if (memory.wanted > 0)
    text += fmt::format(": could not allocate {}, {} of {} are free", human_bytes(memory.wanted),
                        human_bytes(memory.free), human_bytes(memory.total));
  else
    text += fmt::format(
        ": an allocation failed, and the GPU, of {}, waits for ranks that wait for this one",
        human_bytes(memory.total));
  parallel::MemoryKinds kinds = trainer ? trainer->known_memory() : parallel::MemoryKinds();
  const std::int64_t of_tensors = memory.allocated + parallel::registered_bytes();
  kinds.activations = std::max<std::int64_t>(0, of_tensors - kinds.total());
  text += fmt::format("; tensors take {} ({})", human_bytes(of_tensors), kinds.text());
  text += fmt::format("; {} are reserved in pieces that are too small (fragmentation)",
                      human_bytes(std::max<std::int64_t>(0, memory.reserved - memory.allocated)));
  if (memory.free >= 0)
    text += fmt::format(
        ", {} are taken by NCCL, CUDA and other processes",
        human_bytes(std::max<std::int64_t>(0, memory.total - memory.free - memory.reserved)));
  const std::int64_t missing =
      std::max<std::int64_t>(memory.wanted - std::max<std::int64_t>(memory.free, 0), 1);
  text += "; " + memory_advice("use a smaller batch, more ranks or recompute");
  const auto more = trainer ? elsewhere(*trainer, kinds, missing) : std::vector<std::string>();
  if (more.empty()) return text;
  return text +
         fmt::format("; each of these is enough alone, by estimate: {}", fmt::join(more, "; "));
}

void throw_if_out_of_memory(const std::exception& error, Trainer* trainer) {
  const std::optional<FailedAllocation> memory = failed_allocation();
  if (!memory || !dynamic_cast<const c10::OutOfMemoryError*>(&error)) return;
  throw Error(ExitCode::environment, out_of_memory_report(*memory, trainer));
}

std::optional<Error> held_allocation_error(Trainer* trainer) {
  constexpr std::chrono::seconds kHeld{8};
  const std::optional<FailedAllocation> memory = held_allocation(kHeld);
  if (!memory) return std::nullopt;
  return Error(ExitCode::environment, out_of_memory_report(*memory, trainer));
}

void AllocationRetries::warn_once(const comm::World& world, at::Device device) {
  if (warned_ || !device.is_cuda() || device_memory(device).retries == 0) return;
  warned_ = true;
  std::cerr << fmt::format(
      "warning: rank {} on {}: the GPU's memory is used up; an allocation succeeded only after "
      "unused memory was given "
      "back, which holds the GPU up each time. Use a smaller batch or recompute more\n",
      world.rank(), world.host());
}

}  // namespace tessera::train
