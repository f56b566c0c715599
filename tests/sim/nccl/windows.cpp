// SPDX-License-Identifier: Apache-2.0
#include "windows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>

#include "group.hpp"
#include "handle.hpp"
#include "host_call.hpp"
#include "sim/sim.hpp"

struct ncclWindow_vidmem {
  const tessera::sim::nccl::Communicator* communicator;
  const std::byte* data;
  std::size_t bytes;
};

namespace tessera::sim::nccl {
namespace {

/// Of this process.
struct Known {
  std::mutex mutex;
  std::map<const std::byte*, std::size_t> allocations;  ///< bytes of each
  std::vector<std::unique_ptr<ncclWindow_vidmem>> windows;
};
Known& known() {
  static auto* instance = new Known;
  return *instance;
}

bool contains(const std::byte* begin, std::size_t bytes, const void* data, std::size_t part) {
  const auto* first = static_cast<const std::byte*>(data);
  return first >= begin && first + part <= begin + bytes;
}

bool is_allocated(const void* data, std::size_t bytes) {
  const std::lock_guard lock(known().mutex);
  return std::ranges::any_of(known().allocations, [&](const auto& allocation) {
    return contains(allocation.first, allocation.second, data, bytes);
  });
}

/// The members' sizes are compared when all have come.
ncclWindow_t register_now(Communicator& c, const void* data, std::size_t bytes) {
  meet_in(c, {HostCall::Kind::window, 0, 0, {}, bytes});
  for (int r = 0; r < c.size(); ++r) {
    const std::uint64_t theirs = c.slot(r).host_call.window_bytes;
    if (theirs == bytes) continue;
    c.break_rule(fmt::format("rank {} of {} makes a window of {} bytes, and rank {} one of {}",
                             c.rank(), c.title(), bytes, r, theirs));
    c.throw_reason();
  }
  if (!c.meet_on_host()) c.throw_reason();
  const std::lock_guard lock(known().mutex);
  known().windows.push_back(std::make_unique<ncclWindow_vidmem>(
      ncclWindow_vidmem{&c, static_cast<const std::byte*>(data), bytes}));
  return known().windows.back().get();
}

}  // namespace

ncclResult_t allocate_memory(void** data, std::size_t bytes) {
  if (!data) throw Failure(ncclInvalidArgument, "no pointer for the memory");
  if (cudaMalloc(data, bytes) != cudaSuccess) {
    cudaGetLastError();
    throw Failure(ncclUnhandledCudaError, "Cuda failure 2 'out of memory'");
  }
  const std::lock_guard lock(known().mutex);
  known().allocations[static_cast<const std::byte*>(*data)] = bytes;
  return ncclSuccess;
}

ncclResult_t free_memory(void* data) {
  if (!data) return ncclSuccess;
  {
    const std::lock_guard lock(known().mutex);
    const auto found = known().allocations.find(static_cast<const std::byte*>(data));
    if (found == known().allocations.end())
      throw Failure(ncclInvalidArgument, fmt::format("{} is no memory of ncclMemAlloc", data));
    for (const auto& window : known().windows)
      if (contains(found->first, found->second, window->data, window->bytes))
        throw Failure(ncclInvalidUsage, fmt::format("{} is memory of a window of {}", data,
                                                    window->communicator->place()));
    known().allocations.erase(found);
  }
  return cudaFree(data) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

ncclResult_t register_window(ncclComm_t comm, void* data, std::size_t bytes, ncclWindow_t* made,
                             int flags) {
  const auto c = find_ready(comm);
  if (!made) throw Failure(ncclInvalidArgument, "no pointer for the window");
  if (flags != NCCL_WIN_DEFAULT && flags != NCCL_WIN_COLL_SYMMETRIC)
    throw Failure(ncclInvalidArgument, fmt::format("there are no flags {:#x}", flags));
  if (reinterpret_cast<std::uintptr_t>(data) % NCCL_WIN_REQUIRED_ALIGNMENT != 0)
    throw Failure(ncclInvalidArgument, fmt::format("{}: a window begins at a multiple of {} bytes",
                                                   c->place(), NCCL_WIN_REQUIRED_ALIGNMENT));
  if (!is_allocated(data, bytes))
    throw Failure(
        ncclInvalidArgument,
        fmt::format("{}: {} bytes at {} are no memory of ncclMemAlloc", c->place(), bytes, data));
  *made = nullptr;
  return submit(Job{c, c.get(), [c, data, bytes, made] {
                      return result_of(*c, [&] { *made = register_now(*c, data, bytes); });
                    }});
}

ncclResult_t deregister_window(ncclComm_t comm, ncclWindow_t window) {
  const auto c = find(comm);
  if (!c->idle())
    throw Failure(ncclInvalidUsage,
                  fmt::format("ncclCommWindowDeregister on {} while operations of it are under way",
                              c->place()));
  const std::lock_guard lock(known().mutex);
  const auto is_it = [&](const auto& other) {
    return other.get() == window && other->communicator == c.get();
  };
  if (std::erase_if(known().windows, is_it) == 0)
    throw Failure(ncclInvalidArgument, fmt::format("{} has no such window", c->place()));
  return ncclSuccess;
}

void expect_no_windows(const Communicator& communicator) {
  const std::lock_guard lock(known().mutex);
  const auto left = std::ranges::count_if(
      known().windows, [&](const auto& window) { return window->communicator == &communicator; });
  if (left > 0)
    throw Failure(ncclInvalidUsage,
                  fmt::format("{} is ended before its windows, of which there are {}",
                              communicator.place(), left));
}

void forget_windows(const Communicator& communicator) {
  const std::lock_guard lock(known().mutex);
  std::erase_if(known().windows,
                [&](const auto& window) { return window->communicator == &communicator; });
}

std::int64_t offset_in_window(const Communicator& communicator, const void* data,
                              std::size_t bytes) {
  const std::lock_guard lock(known().mutex);
  for (const auto& window : known().windows)
    if (window->communicator == &communicator && contains(window->data, window->bytes, data, bytes))
      return static_cast<const std::byte*>(data) - window->data;
  return -1;
}

}  // namespace tessera::sim::nccl
