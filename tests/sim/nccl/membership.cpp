// SPDX-License-Identifier: Apache-2.0
// How the members of a communicator find each other.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "communicator.hpp"
#include "launch_order.hpp"
#include "names.hpp"
#include "sim/sim.hpp"

namespace tessera::sim::nccl {
namespace {

std::string node() {
  if (const char* name = std::getenv("NCCL_HOSTID")) return name;
  char name[64] = "";
  gethostname(name, sizeof(name) - 1);
  return name;
}

Member this_member(const Communicator& communicator, std::uint64_t ids) {
  Member member{};
  const Arena memory = arena();
  member.pid = getpid();
  member.arena_fd = memory.fd;
  member.arena_bytes = memory.bytes;
  member.device = communicator.device();
  member.ranks = communicator.size();
  member.ids = ids;
  std::snprintf(member.node, sizeof(member.node), "%s", node().c_str());
  return member;
}

/// NCCL asks for one device for each rank, and lets ranks share one from 2.30 on where this
/// variable is 1.
bool may_share_devices() {
  const char* enabled = std::getenv("NCCL_MULTI_RANK_GPU_ENABLE");
  return enabled && std::strcmp(enabled, "1") == 0;
}

bool same_device(const Member& a, const Member& b) {
  return std::strcmp(a.node, b.node) == 0 && a.device == b.device;
}

}  // namespace

void Communicator::join(SharedSegment segment, std::uint64_t ids) {
  open(std::move(segment));
  sends.resize(static_cast<std::size_t>(size()));
  receives.resize(static_cast<std::size_t>(size()));
  enter(ids);
  compare_members();
  for (int r = 0; r < size(); ++r) {
    map_memory_of(r);
    tell_order(*this, r);
  }
  if (!meet_on_host()) throw_reason();
  for (int r = 0; r < size(); ++r) agree_on_order(*this, r);
}

void Communicator::enter(std::uint64_t ids) {
  auto expected = Joined::no;
  if (!mine().joined.compare_exchange_strong(expected, Joined::coming))
    throw Failure(
        ncclInvalidUsage,
        fmt::format(
            "{} has joined already: two ranks gave the same number, or a unique id was used twice",
            place()));
  mine().member = this_member(*this, ids);
  mine().joined = Joined::yes;
  ring_all();
}

void Communicator::compare_members() {
  const Member& me = mine().member;
  const auto refuse = [this](const std::string& why) {
    break_rule(why);
    throw_reason();
  };
  for (int r = 0; r < size(); ++r) {
    if (!await([&] { return slot(r).joined == Joined::yes; })) throw_reason();
    const Member& other = slot(r).member;
    if (other.ranks != me.ranks)
      refuse(fmt::format(
          "rank {} of {} was told that there are {} ranks, and rank {} that there are {}", rank(),
          title(), me.ranks, r, other.ranks));
    if (other.ids != me.ids)
      refuse(fmt::format("ranks {} and {} of {} were given different lists of unique ids", rank(),
                         r, title()));
    if (r != rank() && same_device(me, other) && !may_share_devices())
      refuse(
          fmt::format("Duplicate GPU detected : rank {} and rank {} of {} both on CUDA device {}",
                      rank(), r, title(), me.device));
  }
}

}  // namespace tessera::sim::nccl
