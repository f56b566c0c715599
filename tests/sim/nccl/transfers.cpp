// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstring>
#include <deque>
#include <map>

#include "execution.hpp"
#include "launch_order.hpp"
#include "names.hpp"

namespace tessera::sim::nccl {
namespace {

/// The transfers of one launch between this rank and one other, in one direction.
class Lane {
 public:
  explicit Lane(const Operation& first)
      : c_(*first.communicator),
        peer_(first.peer),
        sends_(first.kind == Kind::send),
        cell_(c_.slot(sends_ ? c_.rank() : peer_)
                  .cells[static_cast<std::size_t>(sends_ ? peer_ : c_.rank())]) {}

  void add(const Operation& o) { waiting_.push_back(&o); }
  bool empty() const { return waiting_.empty(); }
  /// Does what can be done now; true if that was something.
  bool advance() { return sends_ ? advance_send() : advance_receive(); }

  /// To be called before advance(): what the peer had done by then, it had done before it entered.
  void look_at_peer() { entered_ = c_.slot(peer_).entered; }
  /// The peer was in a collective that waits for this rank, and this rank waits here for the peer.
  bool is_hopeless(std::uint64_t collectives_done) const {
    return !empty() && entered_ > collectives_done;
  }
  std::string hopeless() const {
    return fmt::format(
        "rank {} of {} is in {}, call {}, and rank {} waits for it in {} before that call", peer_,
        c_.title(), name_of(c_.slot(peer_).call.kind), c_.slot(peer_).call.number, c_.rank(),
        describe(waiting_.front()->call()));
  }

 private:
  bool advance_send() {
    const Operation& o = *waiting_.front();
    if (cell_.posted < o.number) {
      cell_.type = o.type;
      cell_.count = o.count;
      cell_.in = o.call().in;
      cell_.position = o.positions[static_cast<std::size_t>(peer_)];
      cell_.posted = o.number;
      c_.ring(peer_);
    }
    if (cell_.taken < o.number) return false;
    waiting_.pop_front();
    return true;
  }

  bool advance_receive() {
    const Operation& o = *waiting_.front();
    if (cell_.posted < o.number || !is_agreed(o)) return false;
    if (o.count > 0) std::memcpy(o.out, c_.memory(peer_, cell_.in), o.out_bytes());
    cell_.taken = o.number;
    c_.ring(peer_);
    waiting_.pop_front();
    return true;
  }

  bool is_agreed(const Operation& o) const {
    if (cell_.type != o.type || cell_.count != o.count) {
      Call sent = o.call();
      sent.kind = Kind::send;
      sent.peer = c_.rank();
      sent.type = cell_.type;
      sent.count = cell_.count;
      c_.break_rule(
          fmt::format("in {} rank {} calls {}, number {} of this pair, and rank {} calls {}",
                      c_.title(), peer_, describe(sent), o.number, c_.rank(), describe(o.call())));
      return false;
    }
    const Position& mine = o.positions[static_cast<std::size_t>(peer_)];
    const std::string difference = compare(cell_.position, peer_, mine, c_.rank());
    if (difference.empty()) return true;
    c_.break_rule(fmt::format(
        "ranks {} and {} of {} launch in different orders at the transfer {} between them: {}",
        peer_, c_.rank(), c_.title(), o.number, difference));
    return false;
  }

  Communicator& c_;
  int peer_;
  bool sends_;
  std::uint64_t entered_ = 0;
  Cell& cell_;
  std::deque<const Operation*> waiting_;
};

using Lanes = std::map<std::pair<int, Kind>, Lane>;

/// True once all lanes are empty.
bool advance(Lanes& lanes) {
  bool moved = true, left = true;
  while (moved && left) {
    moved = left = false;
    for (auto& [key, lane] : lanes) {
      if (lane.empty()) continue;
      moved |= lane.advance();
      left |= !lane.empty();
    }
  }
  return !left;
}

}  // namespace

bool run_transfers(const std::vector<const Operation*>& operations) {
  Communicator& c = *operations.front()->communicator;
  Lanes lanes;
  for (const Operation* o : operations)
    lanes.try_emplace({o->peer, o->kind}, *o).first->second.add(*o);
  const std::uint64_t collectives_done = c.mine().entered;
  return c.await([&] {
    for (auto& [key, lane] : lanes) lane.look_at_peer();
    if (advance(lanes)) return true;
    for (const auto& [key, lane] : lanes)
      if (lane.is_hopeless(collectives_done)) c.break_rule(lane.hopeless());
    return false;
  });
}

}  // namespace tessera::sim::nccl
