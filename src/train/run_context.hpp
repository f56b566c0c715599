// SPDX-License-Identifier: Apache-2.0
// What a run has before it has any weights: the devices, the mesh, the model and the data.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>

#include "take_folder.hpp"
#include "tessera/comm/world.hpp"
#include "tessera/inputs/samples.hpp"
#include "tessera/mesh/device_mesh.hpp"
#include "tessera/model/model.hpp"
#include "tessera/plan/job_plan.hpp"
#include "tessera/train/device.hpp"
#include "tessera/train/injected_faults.hpp"

namespace tessera::train {

class Trainer;

/// What this rank computes on; calls of communication are watched for hangs from now on. The first
/// call that waits for others. Collective. Throws Error(environment), also for a GPU without the
/// 8-bit products that the job wants. `look`: see watch_for_hangs().
OwnDevice watched_device(std::optional<comm::Watchdog>& watchdog, comm::World& world,
                         const plan::JobPlan& plan,
                         std::function<std::optional<Error>()> look = {});

/// Where a job succeeds: communicators end one by one on each rank, which the watchdog would take
/// for failures. Ends the job if it does not end in time.
void end_watch(std::optional<comm::Watchdog>& watchdog, const comm::World& world,
               const plan::JobPlan& plan);

/// Made in the order of its members, collectively. What does not fit is said before communicators
/// or weights take any memory.
struct RunContext {
  /// `check`: called with all that is made before the data is read, which may take long.
  RunContext(comm::World& ranks, const plan::JobPlan& with,
             const std::function<void(RunContext&)>& check);

  /// Watches for hangs from now on, with this limit for a call of communication.
  void watch(std::int64_t limit_seconds);
  /// While ranks wait for the slowest disk.
  comm::Watchdog::Patience slow_disks() const {
    return comm::Watchdog::Patience(std::chrono::seconds(plan.comm.save_timeout_seconds));
  }

  comm::World& world;
  const plan::JobPlan& plan;
  std::optional<comm::Watchdog> watchdog;
  /// while there is one: the watchdog asks it what takes memory
  std::atomic<Trainer*> trainer = nullptr;
  OwnDevice own;
  at::Device device;
  InjectedFaults injected;
  FolderLocks folder_locks;
  inputs::Samples samples;
  model::Model model;
  mesh::DeviceMesh mesh;

 private:
  std::optional<Error> held_allocation() const;  ///< of the trainer, which the watchdog asks
};

}  // namespace tessera::train
