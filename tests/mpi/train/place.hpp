// SPDX-License-Identifier: Apache-2.0
// Where tests of trainers compute, and over what their ranks communicate.
#pragma once

#include "tessera/comm/world.hpp"
#include "tessera/train/device.hpp"
#include "test_device.hpp"

namespace tessera::test {

/// Collective over `world`. On the host the backend is `on_host`. On devices, which ranks may
/// share, it is NCCL, or `on_host` too where `over_nccl` is false.
struct Place {
  explicit Place(comm::World& world, comm::Backend on_host = comm::Backend::mpi,
                 bool over_nccl = true)
      : device(at::kCPU), backend(on_host) {
    if (test_device().is_cpu()) return;
    plan::DevicePlan shared;
    shared.share = true;
    device = train::choose_device(world, shared).device;
    if (over_nccl) backend = comm::Backend::nccl;
  }
  at::Device device;
  comm::Backend backend;
};

}  // namespace tessera::test
