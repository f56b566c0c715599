// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/bench_device.hpp"

#include "hang_watch.hpp"
#include "speed.hpp"
#include "tessera/kernels/host_kernels.hpp"
#include "tessera/train/setup.hpp"

namespace tessera::train {
namespace {

OwnDevice watched_choice(std::optional<comm::Watchdog>& watchdog, comm::World& world,
                         const plan::CommPlan& comm, const plan::DevicePlan& plan) {
  watch_for_hangs(watchdog, world, comm, comm.init_timeout_seconds);
  return choose_device(world, plan);
}

}  // namespace

BenchDevice::BenchDevice(comm::World& world, const plan::DevicePlan& plan)
    : world_(world), own_(watched_choice(watchdog_, world, comm_, plan)) {
  use_share_of_cores(world);
  keep_freed_memory();
  kernels::choose_host_kernels(plan.kernels);
}

metrics::Peak BenchDevice::peak(DType dtype) const {
  return peak_of(device(), dtype, world_.local_size());
}

std::unique_ptr<comm::Communicator> BenchDevice::communicator(const std::string& axis) const {
  return is_gpu() ? world_.make(comm::Backend::nccl, axis, comm::Memory::device)
                  : world_.make(comm::Backend::mpi, axis);
}

}  // namespace tessera::train
