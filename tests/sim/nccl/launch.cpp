// SPDX-License-Identifier: Apache-2.0
#include "launch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>

#include "connection.hpp"
#include "execution.hpp"
#include "launch_order.hpp"
#include "names.hpp"
#include "on_device.hpp"
#include "sim/sim.hpp"

namespace tessera::sim::nccl {
namespace {

std::mutex& launch_mutex() {
  static auto* instance = new std::mutex;
  return *instance;
}

void count(Operation& o) {
  Communicator& c = *o.communicator;
  const auto peer = static_cast<std::size_t>(o.peer);
  o.number = o.kind == Kind::send   ? ++c.sends[peer]
             : o.kind == Kind::recv ? ++c.receives[peer]
                                    : ++c.collectives;
}

std::vector<std::shared_ptr<Launch>> by_communicator(std::vector<Operation> operations) {
  std::vector<std::shared_ptr<Launch>> launches;
  for (Operation& o : operations) {
    const auto same = [&o](const auto& launch) {
      return &launch->communicator() == o.communicator.get();
    };
    auto found = std::find_if(launches.begin(), launches.end(), same);
    if (found == launches.end()) found = launches.insert(found, std::make_shared<Launch>());
    (*found)->operations.push_back(std::move(o));
  }
  return launches;
}

cudaError_t follow(cudaStream_t later, cudaStream_t earlier) {
  cudaEvent_t event = nullptr;
  cudaError_t error = cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  if (error != cudaSuccess) return error;
  error = cudaEventRecord(event, earlier);
  if (error == cudaSuccess) error = cudaStreamWaitEvent(later, event, 0);
  cudaEventDestroy(event);
  return error;
}

std::vector<cudaStream_t> streams_of(const std::vector<Operation>& operations) {
  std::vector<cudaStream_t> streams;
  for (const Operation& o : operations)
    if (std::find(streams.begin(), streams.end(), o.stream) == streams.end())
      streams.push_back(o.stream);
  return streams;
}

std::vector<Access> accesses_of(const Launch& launch) {
  std::vector<Access> accesses;
  for (const Operation& o : launch.operations) {
    if (o.in_bytes() > 0) accesses.push_back({o.in, o.in_bytes(), false});
    if (o.out_bytes() > 0) accesses.push_back({o.out, o.out_bytes(), true});
  }
  return accesses;
}

std::string name_of(const Launch& launch) {
  const std::string more =
      launch.operations.size() > 1 ? fmt::format(" and {} more", launch.operations.size() - 1) : "";
  return fmt::format("{}{} of {}", launch.operations.front().title(), more,
                     launch.communicator().title());
}

/// "ncclAllGather", or "ncclAllGather.window" where both buffers are in windows.
std::string counted_name(const Operation& o) {
  const Call call = o.call();
  const bool in_windows = call.in_window >= 0 && call.out_window >= 0;
  return name_of(o.kind) + std::string(in_windows ? ".window" : "");
}

cudaError_t enqueue_launch(const std::shared_ptr<Launch>& launch) {
  if (!is_launching_graph())
    count_work(WorkKind::collective, counted_name(launch->operations.front()));
  const OnDevice device(launch->communicator().device());  // whose default stream a null stream is
  const std::vector<cudaStream_t> streams = streams_of(launch->operations);
  cudaError_t error = cudaSuccess;
  for (std::size_t i = 1; i < streams.size() && error == cudaSuccess; ++i)
    error = follow(streams[0], streams[i]);
  if (error != cudaSuccess) return error;
  error = enqueue(streams[0], name_of(*launch), accesses_of(*launch), [launch] {
    execute(*launch);
    return cudaSuccess;
  });
  for (std::size_t i = 1; i < streams.size() && error == cudaSuccess; ++i)
    error = follow(streams[i], streams[0]);
  return error;
}

ncclResult_t issue(std::vector<Operation> operations) {
  const LaunchLock lock;
  for (Operation& o : operations) count(o);
  number(operations);
  for (const auto& launch : by_communicator(std::move(operations))) {
    Communicator& c = launch->communicator();
    launch->number = c.next_launch();
    if (const cudaError_t error = enqueue_launch(launch); error != cudaSuccess) {
      c.fail(ncclUnhandledCudaError,
             fmt::format("{}: {}: {}", c.place(), name_of(*launch), cudaGetErrorString(error)));
      return ncclUnhandledCudaError;
    }
  }
  return ncclSuccess;
}

/// Operations of a graph are counted and numbered when it is launched, as those that are issued
/// then.
ncclResult_t capture(const std::vector<Operation>& operations) {
  std::vector<std::shared_ptr<void>> held;
  for (const auto& launch : by_communicator(operations)) {
    count_work(WorkKind::collective, counted_name(launch->operations.front()));
    held.push_back(launch->communicator().in_graphs);
  }
  const cudaError_t error =
      capture_call(streams_of(operations), [operations, held](const auto& stream_of) {
        std::vector<Operation> now = operations;
        for (Operation& o : now) o.stream = stream_of(o.stream);
        return issue(std::move(now)) == ncclSuccess ? cudaSuccess : cudaErrorUnknown;
      });
  return error == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

}  // namespace

ncclResult_t launch(std::vector<Operation> operations) {
  if (operations.empty()) return ncclSuccess;
  if (const ncclResult_t checked = check_together(operations); checked != ncclSuccess)
    return checked;
  if (const ncclResult_t connected = connect(operations); connected != ncclSuccess)
    return connected;
  if (is_capturing(operations.front().stream)) return capture(operations);
  return issue(std::move(operations));
}

LaunchLock::LaunchLock() { launch_mutex().lock(); }
LaunchLock::~LaunchLock() { launch_mutex().unlock(); }

}  // namespace tessera::sim::nccl
