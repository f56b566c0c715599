// Where tests of trainers compute, and over what their ranks communicate.
#pragma once

#include "tessera/comm/world.hpp"
#include "tessera/train/device.hpp"
#include "test_device.hpp"

namespace tessera::test {

/// Collective over `world`. On the host the backend is `on_host`; on devices, which ranks may share, it is NCCL.
struct Place {
  explicit Place(comm::World& world, comm::Backend on_host = comm::Backend::mpi) : device(at::kCPU), backend(on_host) {
    if (test_device().is_cpu()) return;
    config::Job job;
    job.share_device = true;
    device = train::choose_device(world, job).device;
    backend = comm::Backend::nccl;
  }
  at::Device device;
  comm::Backend backend;
};

}  // namespace tessera::test
