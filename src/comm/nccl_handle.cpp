// SPDX-License-Identifier: Apache-2.0
#include "nccl_handle.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <future>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "call_log.hpp"
#include "compute_stream.hpp"
#include "hook_list.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/gpu_failure.hpp"
#include "tessera/base/log.hpp"
#include "tessera/base/out_of_memory.hpp"
#include "tessera/comm/failure.hpp"

namespace tessera::comm {
namespace {

/// Valid as long as `place`: NCCL does not copy the name.
ncclConfig_t configuration(const Place& place) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 1;
  config.commName = place.axis.c_str();
  return config;
}

int current_device() {
  int device = 0;
  cudaGetDevice(&device);
  return device;
}

struct Handles {
  std::mutex mutex;
  std::set<NcclHandle*> all;
};
Handles& handles() {
  static auto* instance = new Handles;  // outlives every handle
  return *instance;
}

}  // namespace

NcclHandle::NcclHandle(const Place& place) : place_(place) {
  const std::lock_guard lock(handles().mutex);
  handles().all.insert(this);
}

NcclHandle::NcclHandle(std::span<ncclUniqueId> ids, const Place& place) : NcclHandle(place) {
  ncclConfig_t config = configuration(place_);
  ncclComm_t made = nullptr;
  check(ncclCommInitRankScalable(&made, place_.size, place_.rank, static_cast<int>(ids.size()),
                                 ids.data(), &config),
        "ncclCommInitRankScalable");
  comm_ = made;
}

NcclHandle::~NcclHandle() {
  try {
    finish();
  } catch (const Error& error) {
    log::warning("{}", error.what());
  }
  const std::lock_guard lock(handles().mutex);
  handles().all.erase(this);
}

bool NcclHandle::flushes() const {
  return std::uncaught_exceptions() == 0 && !has_stopped_waiting() && !has_failed_;
}

void NcclHandle::finish() {
  const std::lock_guard lock(mutex_);
  if (!comm_) return;
  if (!flushes()) {
    abort_all("another axis was left after a failure");
    return;
  }
  check(ncclCommFinalize(comm_), "ncclCommFinalize");
  if (ncclComm_t finished = comm_.exchange(nullptr))
    check(ncclCommDestroy(finished), "ncclCommDestroy");
}

std::unique_ptr<NcclHandle> NcclHandle::split(int color, int key, const Place& place) {
  std::unique_ptr<NcclHandle> made(new NcclHandle(place));
  ncclConfig_t config = configuration(made->place_);
  const std::lock_guard lock(mutex_);
  expect_alive_locked();
  ncclComm_t part = nullptr;
  check(ncclCommSplit(comm_, color < 0 ? NCCL_SPLIT_NOCOLOR : color, key, &part, &config),
        "ncclCommSplit");
  made->comm_ = part;
  return part ? std::move(made) : nullptr;
}

void NcclHandle::enqueue(const char* call, const std::function<ncclResult_t(ncclComm_t)>& work) {
  const std::lock_guard lock(mutex_);
  expect_alive_locked();
  check(work(comm_), call);
}

void NcclHandle::enqueue_group(const std::function<ncclResult_t(ncclComm_t)>& work) {
  const std::lock_guard lock(mutex_);
  expect_alive_locked();
  check(ncclGroupStart(), "ncclGroupStart");
  const ncclResult_t inside = work(comm_);
  // even after a failure: the thread must leave the group
  const ncclResult_t ended = ncclGroupEnd();
  check(inside == ncclSuccess ? ended : inside, "ncclGroupEnd");
}

std::string NcclHandle::look() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock || !comm_) return {};
  ncclResult_t result = ncclSuccess;
  const ncclResult_t asked = ncclCommGetAsyncError(comm_, &result);
  if (asked == ncclSuccess && result == ncclSuccess) return {};
  const std::string why = asked == ncclSuccess ? message_of(result, "an operation")
                                               : message_of(asked, "ncclCommGetAsyncError");
  if (has_failed_) {
    abort_all(why);
    return {};
  }
  set_failure(why);
  return why;
}

void NcclHandle::expect_alive() {
  const std::lock_guard lock(mutex_);
  expect_alive_locked();
}

void NcclHandle::expect_alive_locked() const {
  if (comm_ != nullptr && !has_failed_) [[likely]]
    return;
  const std::lock_guard lock(handles().mutex);
  fail(ExitCode::communication, "axis {} cannot be used after its first failure: {}", place_.axis,
       failure_);
}

void NcclHandle::set_failure(const std::string& why) {
  const std::lock_guard lock(handles().mutex);
  if (!has_failed_) failure_ = why;
  has_failed_ = true;
}

void NcclHandle::check(ncclResult_t result, const char* call) {
  if (result == ncclSuccess) [[likely]]
    return;
  const std::string why = message_of(result, call);
  set_failure(why);  // no abort yet: peers would notice it before this rank has said why
  if (const cudaError_t device = cudaPeekAtLastError(); is_gpu_failure(device))
    check_cuda(device, call);
  // Its buffers come at the first use of a communicator, when tensors have nearly all memory.
  require(result != ncclUnhandledCudaError || why.find("out of memory") == why.npos,
          ExitCode::environment,
          "out of memory on this GPU: NCCL has too little for its buffers ({}; rank {} of {} on "
          "axis {}); {}",
          call, place_.rank, place_.size, place_.axis,
          memory_advice("use a smaller batch, more ranks or recompute"));
  throw Error(ExitCode::communication, why);
}

std::string NcclHandle::message_of(ncclResult_t result, const char* call) const {
  return fmt::format(
      "{} failed: {} (code {}, rank {} of {} on axis {}: {}); look for a rank or node that died, "
      "and run with "
      "NCCL_DEBUG=INFO",
      call, ncclGetErrorString(result), static_cast<int>(result), place_.rank, place_.size,
      place_.axis, ncclGetLastError(comm_));
}

bool NcclHandle::abort_all(const std::string& why, std::chrono::milliseconds deadline) {
  std::vector<ncclComm_t> ended;
  {
    const std::lock_guard lock(handles().mutex);
    for (NcclHandle* handle : handles().all) {
      ncclComm_t comm = handle->comm_.exchange(nullptr);
      if (!comm) continue;
      if (!handle->has_failed_.exchange(true)) handle->failure_ = why;
      ended.push_back(comm);
    }
  }
  if (ended.empty()) return true;
  call_before_abort(why);
  std::promise<void> over;
  const std::future<void> done = over.get_future();
  std::thread([ended, device = current_device(), over = std::move(over)]() mutable {
    cudaSetDevice(device);
    ncclGroupStart();
    for (ncclComm_t comm : ended) ncclCommAbort(comm);
    ncclGroupEnd();
    over.set_value();
  }).detach();
  return done.wait_for(deadline) == std::future_status::ready;
}

bool abort_device_communicators(const std::string& why, std::chrono::milliseconds deadline) {
  return NcclHandle::abort_all(why, deadline);
}

namespace {

/// The ids by which the ranks of `host` meet: each is made by the first of the ranks that NCCL lets
/// meet there, which serves their connections. Collective.
std::vector<ncclUniqueId> shared_ids(MpiCommunicator& host, int ranks_per_id) {
  const int count = (host.size() + ranks_per_id - 1) / ranks_per_id;
  const int ranks = host.size() / count, longer = host.size() % count;
  std::vector<ncclUniqueId> ids(static_cast<std::size_t>(count));
  for (int k = 0; k < count; ++k) {
    ncclUniqueId& id = ids[static_cast<std::size_t>(k)];
    const int maker = k * ranks + std::min(k, longer);
    const ncclResult_t made = host.rank() == maker ? ncclGetUniqueId(&id) : ncclSuccess;
    require(made == ncclSuccess, ExitCode::communication,
            "ncclGetUniqueId failed: {}; check NCCL_SOCKET_IFNAME", ncclGetErrorString(made));
    host.broadcast(
            {id.internal, static_cast<std::int64_t>(sizeof(id.internal)), DType::u8, Memory::host},
            maker)
        .wait();
  }
  return ids;
}

}  // namespace

std::shared_ptr<NcclHandle> join_nccl(MpiCommunicator& host, int ranks_per_id) {
  int devices = 0;
  require(cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0, ExitCode::environment,
          "no GPU can be seen on this node; check `nvidia-smi` and CUDA_VISIBLE_DEVICES, or choose "
          "the mpi back end");
  std::vector<ncclUniqueId> ids = shared_ids(host, ranks_per_id);
  // A broadcast may progress only in a later call of MPI, while this rank waits for others inside
  // of NCCL.
  host.barrier();
  LoggedCall logged(CallInfo{.call = Call::split}, host.rank(), host.size(), host.axis(),
                    host.place().members);
  logged.waited_for();
  auto nccl = std::make_shared<NcclHandle>(ids, host.place());
  logged.done();
  return nccl;
}

}  // namespace tessera::comm
