// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstring>
#include <map>

#include "execution.hpp"
#include "launch_order.hpp"
#include "names.hpp"
#include "reduction.hpp"

namespace tessera::sim::nccl {
namespace {

void publish(const Operation& o) {
  Slot& mine = o.communicator->mine();
  mine.call = o.call();
  for (std::size_t r = 0; r < o.positions.size(); ++r) mine.positions[r] = o.positions[r];
  mine.entered = o.number;
}

bool same(const Call& a, const Call& b) {
  return a.kind == b.kind && a.type == b.type && a.op == b.op && a.peer == b.peer &&
         a.count == b.count;
}

/// NCCL asks that a buffer is registered on all members or on none. One that is as large on all of
/// them is at the same place of its window.
bool same_windows(const Call& a, const Call& b) {
  const auto same_place = [](std::int64_t one, std::int64_t other, bool whole) {
    return whole ? one == other : (one < 0) == (other < 0);
  };
  return same_place(a.in_window, b.in_window, a.kind != Kind::all_gather) &&
         same_place(a.out_window, b.out_window, a.kind != Kind::reduce_scatter);
}

/// "ranks 0 1 3: ncclAllReduce(...); ranks 2: ncclAllGather(...)"
std::string calls_of(const Communicator& c) {
  std::map<std::string, std::string> ranks;
  for (int r = 0; r < c.size(); ++r) ranks[describe(c.slot(r).call)] += fmt::format(" {}", r);
  std::string text;
  for (const auto& [call, who] : ranks)
    text += fmt::format("{}rank{}: {}", text.empty() ? "" : "; ", who, call);
  return text;
}

/// All members have entered. Compares what they called and in which order they launch.
void compare_calls(const Operation& o) {
  Communicator& c = *o.communicator;
  for (int r = 0; r < c.size(); ++r)
    if (!same(c.slot(r).call, c.mine().call))
      return c.break_rule(fmt::format("the members of {} differ in their collective {}: {}",
                                      c.title(), o.number, calls_of(c)));
  for (int r = 0; r < c.size() && o.kind != Kind::broadcast; ++r)
    if (!same_windows(c.slot(r).call, c.mine().call))
      return c.break_rule(
          fmt::format("{} of {}: ranks {} and {} give buffers at different places of their windows",
                      o.title(), c.title(), c.rank(), r));
  for (int r = 0; r < c.size(); ++r) {
    const Position& theirs = c.slot(r).positions[static_cast<std::size_t>(c.rank())];
    const std::string difference =
        r == c.rank()
            ? ""
            : compare(c.mine().positions[static_cast<std::size_t>(r)], c.rank(), theirs, r);
    if (!difference.empty())
      return c.break_rule(fmt::format("ranks {} and {} of {} launch in different orders at {}: {}",
                                      c.rank(), r, c.title(), o.title(), difference));
  }
}

class Run {
 public:
  explicit Run(const Operation& o)
      : o_(o),
        c_(*o.communicator),
        size_(static_cast<std::size_t>(c_.size())),
        me_(static_cast<std::size_t>(c_.rank())),
        each_(size_of(o.type)),
        out_(static_cast<std::byte*>(o.out)) {}

  /// Before the members meet again; then finish().
  void begin() {
    const std::size_t bytes = o_.count * each_;
    switch (o_.kind) {
      case Kind::all_reduce:
        return reduce_part(part(me_), out_ + part(me_) * each_, part(me_ + 1) - part(me_));
      case Kind::reduce_scatter:
        return reduce_part(me_ * o_.count, out_, o_.count);
      case Kind::all_gather:
        for (std::size_t r = 0; r < size_; ++r) copy(input(r), out_ + r * bytes, bytes);
        return;
      case Kind::all_to_all:
        for (std::size_t r = 0; r < size_; ++r)
          copy(input(r) + me_ * bytes, out_ + r * bytes, bytes);
        return;
      default:
        return copy(input(static_cast<std::size_t>(o_.peer)), out_, bytes);
    }
  }
  bool has_second_part() const { return o_.kind == Kind::all_reduce; }
  void gather_sums() {
    for (std::size_t r = 0; r < size_; ++r)
      if (r != me_)
        copy(memory(r, c_.slot(static_cast<int>(r)).call.out) + part(r) * each_,
             out_ + part(r) * each_, (part(r + 1) - part(r)) * each_);
  }

 private:
  /// First element that rank r sums up.
  std::size_t part(std::size_t r) const { return o_.count * r / size_; }
  const std::byte* memory(std::size_t r, std::uint64_t offset) const {
    return c_.memory(static_cast<int>(r), offset);
  }
  const std::byte* input(std::size_t r) const {
    return memory(r, c_.slot(static_cast<int>(r)).call.in);
  }
  static void copy(const std::byte* from, std::byte* to, std::size_t bytes) {
    if (from != to && bytes > 0) std::memcpy(to, from, bytes);
  }
  void reduce_part(std::size_t first, std::byte* out, std::size_t count) const {
    std::vector<const std::byte*> inputs;
    for (std::size_t r = 0; r < size_; ++r) inputs.push_back(input(r) + first * each_);
    reduce(inputs, out, count, o_.type, o_.op);
  }

  const Operation& o_;
  Communicator& c_;
  std::size_t size_, me_, each_;
  std::byte* out_;
};

}  // namespace

bool run_collective(const Operation& o) {
  Communicator& c = *o.communicator;
  publish(o);
  if (!c.meet_on_device()) return false;
  compare_calls(o);
  if (c.stopped()) return false;
  Run run(o);
  run.begin();
  if (!c.meet_on_device()) return false;
  if (!run.has_second_part()) return true;
  run.gather_sums();
  return c.meet_on_device();
}

}  // namespace tessera::sim::nccl
