// SPDX-License-Identifier: Apache-2.0
#include "creation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "group.hpp"
#include "handle.hpp"
#include "host_call.hpp"
#include "launch.hpp"
#include "launch_order.hpp"
#include "names.hpp"
#include "windows.hpp"

namespace tessera::sim::nccl {
namespace {

void check_config(const ncclConfig_t* config) {
  if (config && (config->magic != NCCL_CONFIG_MAGIC || config->size < sizeof(ncclConfig_t)))
    throw Failure(ncclInvalidArgument,
                  "the configuration does not begin with NCCL_CONFIG_INITIALIZER");
}

void apply(const ncclConfig_t* config, Request& request) {
  if (!config) return;
  if (config->blocking != NCCL_CONFIG_UNDEF_INT) request.blocking = config->blocking != 0;
  if (config->commName) request.name = config->commName;
}

/// The id at which NCCL lets this rank meet others: as many ranks at each, in order.
const ncclUniqueId& own_id(std::span<const ncclUniqueId> ids, const Communicator& c) {
  const auto rank = static_cast<std::size_t>(c.rank()), size = static_cast<std::size_t>(c.size());
  const std::size_t ranks = size / ids.size(), longer = size % ids.size(),
                    first = longer * (ranks + 1);
  return ids[rank < first ? rank / (ranks + 1) : (rank - first) / ranks + longer];
}

std::uint64_t hash_of(std::span<const ncclUniqueId> ids) {
  return std::hash<std::string_view>{}({ids.front().internal, ids.size_bytes()});
}

/// Ranks of `parent` that chose `color`, in their new order.
std::vector<int> members_of(const Communicator& parent, int color) {
  std::vector<int> members;
  for (int r = 0; r < parent.size(); ++r)
    if (parent.slot(r).host_call.color == color) members.push_back(r);
  std::sort(members.begin(), members.end(), [&](int a, int b) {
    return std::tuple(parent.slot(a).host_call.key, a) <
           std::tuple(parent.slot(b).host_call.key, b);
  });
  return members;
}

/// The child's first member makes its segment while the others wait. Null for no color.
std::shared_ptr<Communicator> split_now(Communicator& parent, int color, int key, Request request) {
  if (!parent.idle()) {
    parent.break_rule(
        fmt::format("ncclCommSplit on {} while operations of it are under way", parent.place()));
    parent.throw_reason();
  }
  meet_in(parent, {HostCall::Kind::split, color, key, {}, 0});
  const std::vector<int> members = color < 0 ? std::vector<int>{} : members_of(parent, color);
  if (!members.empty() && members.front() == parent.rank()) {
    SharedSegment made = SharedSegment::make();
    parent.mine().host_call.child = made.id();
    made.keep_open();
  }
  if (!parent.meet_on_host()) parent.throw_reason();
  if (members.empty()) return nullptr;
  request.rank =
      static_cast<int>(std::find(members.begin(), members.end(), parent.rank()) - members.begin());
  request.size = static_cast<int>(members.size());
  const ncclUniqueId id = parent.slot(members.front()).host_call.child;
  auto child = std::make_shared<Communicator>(request);
  child->join(SharedSegment::open(id), 0);
  SharedSegment::forget(id);
  return child;
}

/// NCCL waits for the end of all graphs that have operations of the communicator, silently.
void expect_no_graphs(const Communicator& c) {
  if (c.in_graphs.use_count() > 1)
    throw Failure(ncclInvalidUsage,
                  fmt::format("{} is ended before the graphs with its operations", c.place()));
}

/// As commDestroySync() does in NCCL 2.28, also for an abort.
void wait_for_graphs(const Communicator& c) {
  while (c.in_graphs.use_count() > 1) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

void finalize_now(Communicator& c) {
  expect_no_graphs(c);
  expect_no_windows(c);
  if (!c.await([&] { return c.idle(); })) c.throw_reason();
  meet_in(c, {HostCall::Kind::finalize, 0, 0, {}, 0});
  c.end(Life::finalized);
}

void wait_while_in_progress(const Communicator& c) {
  while (c.state() == ncclInProgress) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace

ncclResult_t make(ncclComm_t* made, int ranks, int rank, std::span<const ncclUniqueId> ids,
                  const ncclConfig_t* config) {
  if (!made || ids.empty())
    throw Failure(ncclInvalidArgument, "no communicator pointer, or no unique id");
  *made = nullptr;
  if (ranks < 1 || rank < 0 || rank >= ranks)
    throw Failure(ncclInvalidArgument, fmt::format("there is no rank {} of {}", rank, ranks));
  if (ranks > kMaxRanks)
    throw Failure(
        ncclInvalidUsage,
        fmt::format("the simulated NCCL has communicators of {} ranks at most", kMaxRanks));
  check_config(config);
  Request request{.rank = rank, .size = ranks};
  cudaGetDevice(&request.device);
  apply(config, request);
  auto c = std::make_shared<Communicator>(request);
  *made = add_handle(c);
  return submit(Job{c, c.get(), [c, made, all = std::vector(ids.begin(), ids.end())] {
                      const ncclResult_t result = result_of(*c, [&] {
                        static_cast<void>(SharedSegment::open(own_id(all, *c)));
                        c->join(SharedSegment::open(all.front()), hash_of(all));
                        for (const ncclUniqueId& id : all) SharedSegment::forget(id);
                      });
                      if (result != ncclSuccess && c->blocking()) *made = nullptr;
                      return result;
                    }});
}

ncclResult_t split(ncclComm_t handle, int color, int key, ncclComm_t* made,
                   const ncclConfig_t* config) {
  auto parent = find_ready(handle);
  if (!made) throw Failure(ncclInvalidArgument, "no pointer for the new communicator");
  if (color < 0 && color != NCCL_SPLIT_NOCOLOR)
    throw Failure(ncclInvalidArgument, "the color is negative");
  check_config(config);
  Request request{.device = parent->device(), .blocking = parent->blocking()};
  apply(config, request);
  *made = nullptr;
  return submit(Job{parent, parent.get(), [parent, color, key, made, request] {
                      return result_of(*parent, [&] {
                        if (auto child = split_now(*parent, color, key, request))
                          *made = add_handle(std::move(child));
                      });
                    }});
}

ncclResult_t finalize(ncclComm_t handle) {
  auto c = find_ready(handle);
  return submit(Job{c, c.get(), [c] { return result_of(*c, [&] { finalize_now(*c); }); }});
}

ncclResult_t destroy(ncclComm_t handle) {
  auto c = find(handle);
  const auto work = [c, handle] {
    wait_while_in_progress(*c);
    c->stopped();  // learns what other members have found
    ncclResult_t result = c->state();
    if (result == ncclSuccess && c->life() == Life::made)
      result = result_of(*c, [&] { finalize_now(*c); });
    if (result != ncclSuccess) {
      tell(fmt::format("ncclCommDestroy of {}, which has failed: it is aborted", c->place()));
      c->abort();
    }
    retire(handle, Life::destroyed);
    return result;
  };
  return submit(Job{c, c.get(), work, false});
}

ncclResult_t abort(ncclComm_t handle) {
  auto c = find(handle);
  c->abort();
  {
    const LaunchLock lock;
    if (c->is_open()) forget_order(*c);
  }
  forget_windows(*c);
  retire(handle, Life::aborted);
  return submit(Job{c, c.get(),
                    [c] {
                      wait_for_graphs(*c);
                      cudaDeviceSynchronize();
                      return ncclSuccess;
                    },
                    false});
}

}  // namespace tessera::sim::nccl
