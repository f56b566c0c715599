// SPDX-License-Identifier: Apache-2.0
#include "handle.hpp"

#include <fmt/format.h>

#include <mutex>
#include <set>
#include <utility>

#include "names.hpp"

struct ncclComm {
  std::shared_ptr<tessera::sim::nccl::Communicator> communicator;
  std::string end;  ///< why there is none any more
};

namespace tessera::sim::nccl {
namespace {

struct Handles {
  std::mutex mutex;
  std::set<ncclComm_t> all;
};
Handles& handles() {
  static auto* instance = new Handles;
  return *instance;
}

}  // namespace

ncclComm_t add_handle(std::shared_ptr<Communicator> communicator) {
  auto* handle = new ncclComm{std::move(communicator), ""};
  const std::lock_guard lock(handles().mutex);
  handles().all.insert(handle);
  return handle;
}

std::shared_ptr<Communicator> find(ncclComm_t handle) {
  if (!handle) throw Failure(ncclInvalidArgument, "the communicator is null");
  const std::lock_guard lock(handles().mutex);
  if (!handles().all.contains(handle))
    throw Failure(ncclInvalidArgument, "this is no communicator");
  if (!handle->communicator) throw Failure(ncclInvalidArgument, handle->end);
  return handle->communicator;
}

std::shared_ptr<Communicator> find_ready(ncclComm_t handle) {
  auto communicator = find(handle);
  const std::string place = communicator->place();
  communicator->stopped();  // learns what other members have found
  const ncclResult_t state = communicator->state();
  if (state == ncclInProgress)
    throw Failure(ncclInvalidArgument,
                  fmt::format("{} is not ready: an earlier call is in progress", place));
  if (state != ncclSuccess)
    throw Failure(state, fmt::format("{} has failed before: {}", place, communicator->reason()));
  if (communicator->life() == Life::finalized)
    throw Failure(ncclInvalidUsage, fmt::format("{} was finalized", place));
  return communicator;
}

void retire(ncclComm_t handle, Life how) {
  const std::lock_guard lock(handles().mutex);
  if (!handle->communicator) return;
  handle->end = fmt::format("{} was {}", handle->communicator->place(), name_of(how));
  handle->communicator = nullptr;
}

}  // namespace tessera::sim::nccl
