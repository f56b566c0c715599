// SPDX-License-Identifier: Apache-2.0
// The functions that nccl.h declares.
#include <nccl.h>

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <span>
#include <thread>

#include "creation.hpp"
#include "group.hpp"
#include "handle.hpp"
#include "injection.hpp"
#include "names.hpp"
#include "windows.hpp"

namespace tessera::sim::nccl {
namespace {

/// The body of every call: injected failures, and exceptions as result codes.
template <class Body>
ncclResult_t call(const char* name, Body body) {
  if (is_injected(name)) {
    tell(fmt::format("{}: injected failure", name));
    return ncclSystemError;
  }
  try {
    return body();
  } catch (const Failure& failure) {
    tell(fmt::format("{}: {}", name, failure.what()));
    return failure.result();
  } catch (const std::exception& error) {
    tell(fmt::format("{}: {}", name, error.what()));
    return ncclSystemError;
  }
}

ncclResult_t submit(Kind kind, Operation operation, ncclComm_t comm) {
  return note_in_group(call(name_of(kind), [&] {
    if (is_injected("memory"))
      throw Failure(ncclUnhandledCudaError, "Cuda failure 2 'out of memory'");
    operation.kind = kind;
    operation.communicator = find_ready(comm);
    return nccl::submit(std::move(operation));
  }));
}

template <class Value>
ncclResult_t ask(const char* name, ncclComm_t comm, int* out, Value value) {
  return call(name, [&] {
    if (!out) throw Failure(ncclInvalidArgument, "no pointer for the result");
    *out = value(*find(comm));
    return ncclSuccess;
  });
}

}  // namespace
}  // namespace tessera::sim::nccl

using namespace tessera::sim::nccl;

ncclResult_t ncclGetVersion(int* version) {
  if (!version) return ncclInvalidArgument;
  const char* pretended = std::getenv("TESSERA_SIM_NCCL_VERSION");
  *version = pretended ? std::atoi(pretended) : NCCL_VERSION_CODE;
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) { return text_of(result); }
const char* ncclGetLastError(ncclComm_t) { return last_told(); }

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  return call("ncclGetUniqueId", [&] {
    if (!id) throw Failure(ncclInvalidArgument, "no pointer for the id");
    SharedSegment segment = SharedSegment::make();
    *id = segment.id();
    segment.keep_open();
    return ncclSuccess;
  });
}

ncclResult_t ncclCommInitRank(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank) {
  return call("ncclCommInitRank", [&] { return make(comm, ranks, rank, {&id, 1}, nullptr); });
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  return call("ncclCommInitRankConfig", [&] { return make(comm, ranks, rank, {&id, 1}, config); });
}

ncclResult_t ncclCommInitRankScalable(ncclComm_t* comm, int ranks, int rank, int ids_count,
                                      ncclUniqueId* ids, ncclConfig_t* config) {
  return call("ncclCommInitRankScalable", [&] {
    if (!ids || ids_count < 1 || ids_count > ranks)
      throw Failure(ncclInvalidArgument,
                    fmt::format("{} unique ids for {} ranks", ids_count, ranks));
    return make(comm, ranks, rank, {ids, static_cast<std::size_t>(ids_count)}, config);
  });
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* made,
                           ncclConfig_t* config) {
  return call("ncclCommSplit", [&] { return split(comm, color, key, made, config); });
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  return call("ncclCommFinalize", [&] { return finalize(comm); });
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  return call("ncclCommDestroy", [&] { return comm ? destroy(comm) : ncclSuccess; });
}

/// One that is injected does not return for a minute: such ones exist where an operation never
/// ends.
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  if (is_injected("ncclCommAbort")) std::this_thread::sleep_for(std::chrono::minutes(1));
  return call("ncclCommAbort", [&] { return comm ? abort(comm) : ncclSuccess; });
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  return call("ncclCommGetAsyncError", [&] {
    if (!error) throw Failure(ncclInvalidArgument, "no pointer for the result");
    const auto communicator = find(comm);
    communicator->stopped();  // learns what other members have found
    *error = communicator->state();
    return ncclSuccess;
  });
}

ncclResult_t ncclCommCount(ncclComm_t comm, int* count) {
  return ask("ncclCommCount", comm, count, [](const Communicator& c) { return c.size(); });
}

ncclResult_t ncclCommUserRank(ncclComm_t comm, int* rank) {
  return ask("ncclCommUserRank", comm, rank, [](const Communicator& c) { return c.rank(); });
}

ncclResult_t ncclCommCuDevice(ncclComm_t comm, int* device) {
  return ask("ncclCommCuDevice", comm, device, [](const Communicator& c) { return c.device(); });
}

ncclResult_t ncclMemAlloc(void** data, size_t bytes) {
  return call("ncclMemAlloc", [&] { return allocate_memory(data, bytes); });
}

ncclResult_t ncclMemFree(void* data) {
  return call("ncclMemFree", [&] { return free_memory(data); });
}

ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void* data, size_t bytes, ncclWindow_t* window,
                                    int flags) {
  return call("ncclCommWindowRegister",
              [&] { return register_window(comm, data, bytes, window, flags); });
}

ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window) {
  return call("ncclCommWindowDeregister", [&] { return deregister_window(comm, window); });
}

ncclResult_t ncclAllReduce(const void* in, void* out, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return submit(Kind::all_reduce,
                {.in = in, .out = out, .count = count, .type = type, .op = op, .stream = stream},
                comm);
}

ncclResult_t ncclBroadcast(const void* in, void* out, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  return submit(
      Kind::broadcast,
      {.in = in, .out = out, .count = count, .type = type, .peer = root, .stream = stream}, comm);
}

ncclResult_t ncclReduceScatter(const void* in, void* out, size_t out_count, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return submit(
      Kind::reduce_scatter,
      {.in = in, .out = out, .count = out_count, .type = type, .op = op, .stream = stream}, comm);
}

ncclResult_t ncclAllGather(const void* in, void* out, size_t in_count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  return submit(Kind::all_gather,
                {.in = in, .out = out, .count = in_count, .type = type, .stream = stream}, comm);
}

ncclResult_t ncclAlltoAll(const void* in, void* out, size_t count, ncclDataType_t type,
                          ncclComm_t comm, cudaStream_t stream) {
  return submit(Kind::all_to_all,
                {.in = in, .out = out, .count = count, .type = type, .stream = stream}, comm);
}

ncclResult_t ncclSend(const void* in, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return submit(Kind::send,
                {.in = in, .count = count, .type = type, .peer = peer, .stream = stream}, comm);
}

ncclResult_t ncclRecv(void* out, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return submit(Kind::recv,
                {.out = out, .count = count, .type = type, .peer = peer, .stream = stream}, comm);
}

ncclResult_t ncclGroupStart() {
  return call("ncclGroupStart", [] {
    group_start();
    return ncclSuccess;
  });
}

ncclResult_t ncclGroupEnd() {
  return call("ncclGroupEnd", [] { return group_end(); });
}
