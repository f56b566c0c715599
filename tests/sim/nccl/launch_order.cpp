// SPDX-License-Identifier: Apache-2.0
#include "launch_order.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <set>
#include <tuple>

#include "launch.hpp"
#include "names.hpp"

namespace tessera::sim::nccl {
namespace {

/// A device of this process and a device of another one (or of this one).
using Pair = std::tuple<int, std::int32_t, std::int32_t>;

struct History {
  std::uint32_t launched = 0;
  std::string last;
  OrderState state{};
};
std::map<Pair, History>& histories() {
  static auto* instance = new std::map<Pair, History>;
  return *instance;
}

Pair pair_of(const Communicator& c, int rank) {
  const Member& other = c.slot(rank).member;
  return {c.device(), other.pid, other.device};
}

bool concerns(const Operation& operation, int rank) {
  const Communicator& c = *operation.communicator;
  return pair_of(c, rank) != pair_of(c, c.rank()) &&
         (!transfers(operation.kind) || operation.peer == rank);
}

template <class Visit>
void for_peers(std::vector<Operation>& operations, Visit visit) {
  for (Operation& operation : operations)
    for (int r = 0; r < operation.communicator->size(); ++r)
      if (concerns(operation, r)) visit(operation, r, pair_of(*operation.communicator, r));
}

Position position_of(const History& history, std::uint32_t together) {
  Position position{};
  if (history.state.unknown) return position;
  position.epoch = history.state.epoch;
  position.first = history.launched + 1;
  position.last = history.launched + together;
  std::snprintf(position.previous, sizeof(position.previous), "%s",
                history.last.empty() ? "none" : history.last.c_str());
  return position;
}

std::string place(const Position& p, int rank) {
  return fmt::format("number {} for rank {} (the one before: {})", p.first, rank, p.previous);
}

}  // namespace

void number(std::vector<Operation>& launched) {
  std::map<Pair, std::uint32_t> together;
  for_peers(launched, [&](Operation&, int, const Pair& pair) { ++together[pair]; });
  for (Operation& operation : launched)
    operation.positions.resize(static_cast<std::size_t>(operation.communicator->size()));
  for_peers(launched, [&](Operation& operation, int r, const Pair& pair) {
    operation.positions[static_cast<std::size_t>(r)] =
        position_of(histories()[pair], together.at(pair));
  });
  for_peers(launched, [&](Operation& operation, int, const Pair& pair) {
    History& history = histories()[pair];
    history.launched += 1;
    history.last = fmt::format("{} of {}", operation.title(), operation.communicator->title());
  });
}

void forget_order(const Communicator& communicator) {
  for (int r = 0; r < communicator.size(); ++r)
    histories()[pair_of(communicator, r)].state.unknown = true;
}

void tell_order(const Communicator& c, int rank) {
  const LaunchLock lock;
  c.mine().order[static_cast<std::size_t>(rank)] = histories()[pair_of(c, rank)].state;
}

void agree_on_order(const Communicator& c, int rank) {
  const OrderState mine = c.mine().order[static_cast<std::size_t>(rank)];
  const OrderState theirs = c.slot(rank).order[static_cast<std::size_t>(c.rank())];
  if (!mine.unknown && !theirs.unknown) return;
  const LaunchLock lock;
  histories()[pair_of(c, rank)] = {0, "", {std::max(mine.epoch, theirs.epoch) + 1, false}};
}

std::string compare(const Position& a, int rank_a, const Position& b, int rank_b) {
  if (a.first == 0 || b.first == 0 || a.epoch != b.epoch) return "";
  if (a.first <= b.last && b.first <= a.last) return "";
  return fmt::format("of the operations that the two launch on all communicators it is {} and {}",
                     place(a, rank_a), place(b, rank_b));
}

}  // namespace tessera::sim::nccl
