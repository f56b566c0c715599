// SPDX-License-Identifier: Apache-2.0
#include "memory_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iostream>
#include <utility>
#include <vector>

#include "tessera/metrics/human.hpp"
#include "tessera/train/device.hpp"

namespace tessera::train {
namespace {

using mesh::Axis;
using metrics::human_bytes;

/// Which keys to change, so that `missing` bytes more are free. Activations grow with the sequences
/// of a microbatch; weights, gradients and moments shrink with the ranks that share them.
class Remedies {
 public:
  Remedies(Trainer& trainer, const parallel::MemoryKinds& kinds, std::int64_t missing)
      : trainer_(trainer), kinds_(kinds), missing_(missing) {}

  std::vector<std::string> all() const {
    std::vector<std::string> all;
    for (const auto& remedy : {recompute(), smaller_microbatch(), more_shards(), offload()})
      if (!remedy.empty()) all.push_back(remedy);
    return all;
  }

 private:
  /// What stays of each unit is its input, and of one unit at a time everything.
  std::string recompute() const {
    if (trainer_.plan().recompute.is_full()) return {};
    const auto units =
        static_cast<std::int64_t>(std::max<std::size_t>(1, trainer_.stages().groups().size()));
    const parallel::StageOptions& options = trainer_.stages().options();
    const std::int64_t inputs =
        units * options.microbatch.tokens() * trainer_.model().dimensions.dim *
        static_cast<std::int64_t>(at::elementSize(options.sharding.precision.compute));
    if (kinds_.activations - kinds_.activations / units - inputs < missing_) return {};
    return "activation_checkpoint.mode = \"full\"";
  }

  std::string smaller_microbatch() const {
    const std::int64_t rows = trainer_.batch_plan().microbatch_rows;
    for (std::int64_t fewer = rows - 1; fewer > 0; --fewer) {
      if (rows % fewer != 0 || kinds_.activations - kinds_.activations * fewer / rows < missing_)
        continue;
      const bool pipeline = trainer_.mesh().layout().degree(Axis::pp) > 1;
      return fmt::format(
          "{} = {} (now {})",
          pipeline ? "parallelism.pipeline_parallel_microbatch_size" : "training.local_batch_size",
          fewer, rows);
    }
    return {};
  }

  std::string more_shards() const {
    const int degree = trainer_.mesh().layout().degree(Axis::dp_shard);
    for (const int times : {2, 4, 8})
      if (kinds_.state() - kinds_.state() / times >= missing_)
        return fmt::format(
            "parallelism.data_parallel_shard_degree = {} (now {}), on {} times as many ranks",
            degree * times, degree, times);
    return {};
  }

  std::string offload() const {
    if (trainer_.plan().sharding.offload || kinds_.state() < missing_) return {};
    return "training.enable_cpu_offload = true";
  }

  Trainer& trainer_;
  const parallel::MemoryKinds& kinds_;
  std::int64_t missing_;
};

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
  kinds.activations = std::max<std::int64_t>(0, memory.allocated - kinds.total());
  text += fmt::format("; tensors take {} ({})", human_bytes(memory.allocated), kinds.text());
  text += fmt::format("; {} are reserved in pieces that are too small (fragmentation)",
                      human_bytes(std::max<std::int64_t>(0, memory.reserved - memory.allocated)));
  if (memory.free >= 0)
    text += fmt::format(
        ", {} are taken by NCCL, CUDA and other processes",
        human_bytes(std::max<std::int64_t>(0, memory.total - memory.free - memory.reserved)));
  const std::int64_t missing =
      std::max<std::int64_t>(memory.wanted - std::max<std::int64_t>(memory.free, 0), 1);
  const auto remedies =
      trainer ? Remedies(*trainer, kinds, missing).all() : std::vector<std::string>();
  if (remedies.empty()) return text + "; use a smaller batch, more ranks or recompute";
  return text +
         fmt::format("; each of these is enough, by estimate: {}", fmt::join(remedies, "; "));
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
