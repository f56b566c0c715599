// SPDX-License-Identifier: Apache-2.0
// What benchmarks without a job compute and communicate on.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "tessera/comm/world.hpp"
#include "tessera/metrics/flops.hpp"
#include "tessera/plan/execution_plan.hpp"
#include "tessera/train/device.hpp"

namespace tessera::train {

/// This rank's GPU, or its share of the host's cores. While it lives, calls between ranks are
/// watched: one that hangs ends all ranks with code 7 and names the rank that is missing.
class BenchDevice {
 public:
  /// Collective: see choose_device(). `world` outlives it.
  BenchDevice(comm::World& world, const plan::DevicePlan& plan);
  BenchDevice(const BenchDevice&) = delete;

  comm::World& world() const { return world_; }
  at::Device device() const { return own_.device; }
  bool is_gpu() const { return !own_.device.is_cpu(); }
  /// "NVIDIA H200"; empty for the host.
  std::string name() const { return device_name(own_.device); }
  /// The device's peak by its data sheet, or the estimate for this rank's cores; 0: unknown.
  metrics::Peak peak(DType dtype) const;
  /// Collective: all ranks, by NCCL between GPUs and by MPI on the host.
  std::unique_ptr<comm::Communicator> communicator(const std::string& axis) const;

 private:
  comm::World& world_;
  plan::CommPlan comm_;
  std::optional<comm::Watchdog> watchdog_;
  OwnDevice own_;
};

}  // namespace tessera::train
