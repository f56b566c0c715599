#include "nccl_handle.hpp"

#include <fmt/format.h>

#include <exception>

#include "tessera/base/error.hpp"
#include "tessera/base/log.hpp"

namespace tessera::comm {
namespace {

/// Valid as long as `place`: NCCL does not copy the name.
ncclConfig_t configuration(const Place& place) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 1;
  config.commName = place.axis.c_str();
  return config;
}

}  // namespace

NcclHandle::NcclHandle(const ncclUniqueId& id, const Place& place) : place_(place) {
  ncclConfig_t config = configuration(place_);
  check(ncclCommInitRankConfig(&comm_, place_.size, id, place_.rank, &config), "ncclCommInitRankConfig");
}

NcclHandle::~NcclHandle() {
  try {
    finish();
  } catch (const Error& error) {
    log::warning("{}", error.what());
  }
}

void NcclHandle::finish() {
  const std::lock_guard lock(mutex_);
  if (!comm_) return;
  if (std::uncaught_exceptions() > 0) {
    abort();
    return;
  }
  check(ncclCommFinalize(comm_), "ncclCommFinalize");
  ncclComm_t finished = std::exchange(comm_, nullptr);
  check(ncclCommDestroy(finished), "ncclCommDestroy");
}

std::unique_ptr<NcclHandle> NcclHandle::split(int color, int key, const Place& place) {
  std::unique_ptr<NcclHandle> made(new NcclHandle(place));
  ncclConfig_t config = configuration(made->place_);
  const std::lock_guard lock(mutex_);
  expect_alive_locked();
  check(ncclCommSplit(comm_, color < 0 ? NCCL_SPLIT_NOCOLOR : color, key, &made->comm_, &config), "ncclCommSplit");
  return made->comm_ ? std::move(made) : nullptr;
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
  const ncclResult_t ended = ncclGroupEnd();  // even after a failure: the thread must leave the group
  check(inside == ncclSuccess ? ended : inside, "ncclGroupEnd");
}

std::string NcclHandle::look() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock || !comm_) return {};
  ncclResult_t result = ncclSuccess;
  try {
    check(ncclCommGetAsyncError(comm_, &result), "ncclCommGetAsyncError");
    check(result, "an operation");
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

void NcclHandle::expect_alive() {
  const std::lock_guard lock(mutex_);
  expect_alive_locked();
}

void NcclHandle::expect_alive_locked() const {
  require(comm_ != nullptr, ExitCode::communication, "axis {} cannot be used after its first failure: {}", place_.axis,
          failure_);
}

void NcclHandle::check(ncclResult_t result, const char* call) {
  if (result == ncclSuccess) [[likely]]
    return;
  failure_ = fmt::format(
      "{} failed: {} (code {}, rank {} of {} on axis {}: {}); look for a rank or node that died, and run with "
      "NCCL_DEBUG=INFO",
      call, ncclGetErrorString(result), static_cast<int>(result), place_.rank, place_.size, place_.axis,
      ncclGetLastError(comm_));
  abort();
  throw Error(ExitCode::communication, failure_);
}

void NcclHandle::abort() {
  if (comm_) ncclCommAbort(comm_);
  comm_ = nullptr;
}

}  // namespace tessera::comm
