// SPDX-License-Identifier: Apache-2.0
#include "issue_kernel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "sim/sim.hpp"
#include "strided_bytes.hpp"

namespace tessera::sim {
namespace {

using kernels::device::Launch;

std::vector<Access> accesses_of(std::span<const Operand> operands) {
  std::vector<Access> accesses;
  for (const Operand& operand : operands)
    add_accesses(accesses, operand.data, static_cast<std::size_t>(operand.bytes),
                 {{operand.rows, operand.row_stride}, {operand.groups, operand.group_stride}},
                 operand.written);
  return accesses;
}

bool is_pinned(const void* pointer) {
  cudaPointerAttributes attributes{};
  return cudaPointerGetAttributes(&attributes, pointer) == cudaSuccess &&
         attributes.type == cudaMemoryTypeHost;
}

/// "" where all operands lie in the memory that they should.
std::string misplaced_operand(const Launch& launch) {
  for (const Operand& operand : launch.operands) {
    const auto lies = operand.pinned ? &is_pinned : &is_device_pointer;
    for (const Access& access : accesses_of(std::span(&operand, 1)))
      if (!lies(access.data) ||
          !lies(static_cast<const std::byte*>(access.data) + access.bytes - 1))
        return fmt::format("kernel {}: an operand at {} is not in {} memory", launch.name,
                           fmt::ptr(access.data), operand.pinned ? "pinned" : "device");
  }
  return {};
}

/// All blocks, up to the first fault. The last one follows the first in the same threads and the
/// same shared memory, as blocks do where there are more of them than a grid may have.
std::string run_blocks(const Launch& launch, const BlockBody& body) {
  KernelAccesses accesses(launch.name, launch.operands);
  Block block(kernels::device::threads_per_block, launch.shared_bytes, accesses);
  const std::int64_t grid = std::max<std::int64_t>(1, launch.blocks - 1);
  const BlockBody stride = [&](std::int64_t index, unsigned char* shared) {
    for (; index < launch.blocks; index += grid) body(index, shared);
  };
  for (std::int64_t index = 0; index < grid && accesses.fault().empty(); ++index)
    if (!block.run(index, stride)) break;
  return accesses.fault();
}

}  // namespace

void issue_kernel(const Launch& launch, BlockBody body) {
  count_work(WorkKind::launch, launch.name);
  const std::string misplaced = misplaced_operand(launch);
  if (!misplaced.empty()) return fail_device(cudaErrorIllegalAddress, misplaced);
  const Work work = [launch, body = std::move(body)] {
    const std::string fault = run_blocks(launch, body);
    if (fault.empty()) return cudaSuccess;
    fail_device(cudaErrorIllegalAddress, fault);
    return cudaErrorIllegalAddress;
  };
  const std::vector<Access> accesses = accesses_of(launch.operands);
  const bool waits = settings().queued_operators || is_capturing(launch.stream);
  const auto issue = waits ? &enqueue : &run_at_once;
  // check_launch() asks for the error
  static_cast<void>(issue(launch.stream, launch.name, accesses, work));
}

}  // namespace tessera::sim
