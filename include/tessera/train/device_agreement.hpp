// SPDX-License-Identifier: Apache-2.0
// Whether the ranks of a job can train together on the devices that they have.
#pragma once

#include <span>
#include <string>

#include "tessera/comm/device.hpp"
#include "tessera/plan/execution_plan.hpp"

namespace tessera::train {

/// What one rank has, and where it runs.
struct RankDevice {
  std::string host;
  comm::DeviceFacts facts;
};

/// As one line, and back.
std::string text_of(const RankDevice& device);
RankDevice rank_device_of(const std::string& text);

/// How many of `ranks` have the GPU of `one`.
int ranks_on_gpu(std::span<const RankDevice> ranks, const RankDevice& one);

/// What is unusual about them and no error: drivers that differ. Empty where nothing is.
std::string device_warning(std::span<const RankDevice> ranks);

/// Why the ranks cannot train on what they have, with ranks, hosts and what to do; empty where they
/// can. `ranks` in rank order, the same on all ranks. `wanted` is job.device. With `share`, ranks
/// of a node may have the same GPU. Without `with_nccl` no library of NCCL is looked at.
std::string device_problem(std::span<const RankDevice> ranks, plan::DeviceChoice wanted, bool share,
                           bool with_nccl = true);

}  // namespace tessera::train
