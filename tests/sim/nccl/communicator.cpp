// SPDX-License-Identifier: Apache-2.0
#include "communicator.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <cstring>

#include "names.hpp"
#include "sim/sim.hpp"

namespace tessera::sim::nccl {

const char* name_of(Life life) {
  static constexpr const char* kNames[] = {"made", "finalized", "aborted", "destroyed"};
  return kNames[static_cast<int>(life)];
}

std::string Members::name() const {
  if (!request_.name) return "without a name";
  std::string text(request_.name, strnlen(request_.name, 40));
  for (char& c : text)
    if (c < ' ' || c > '~') c = '?';
  return text;
}

std::string Members::title() const { return "communicator " + name(); }

std::string Members::place() const {
  return fmt::format("rank {} of {} of {}", rank(), size(), title());
}

void Members::ring_all() const {
  for (int r = 0; r < size(); ++r) ring(r);
}

void Members::open(SharedSegment segment) {
  segment_.emplace(std::move(segment));
  open_ = true;
}

bool Communicator::meet(std::atomic<std::uint64_t>& arrivals, std::uint64_t& meetings) {
  const std::uint64_t all = ++meetings * static_cast<std::uint64_t>(size());
  if (arrivals.fetch_add(1) + 1 == all) ring_all();
  return await([&] { return arrivals.load() >= all; });
}

void Communicator::set_state(ncclResult_t state) {
  ncclResult_t expected = state_;
  while ((expected == ncclSuccess || expected == ncclInProgress) &&
         !state_.compare_exchange_weak(expected, state)) {
  }
}

void Communicator::break_rule(const std::string& why) {
  Segment& shared = segment();
  auto expected = Segment::Broken::no;
  if (shared.broken.compare_exchange_strong(expected, Segment::Broken::written)) {
    std::snprintf(shared.why, sizeof(shared.why), "%s", why.c_str());
    shared.broken = Segment::Broken::yes;
    tell(why);
    ring_all();
  }
  await([] { return false; });  // until the text is there, which another member may be writing
}

void Communicator::fail(ncclResult_t error, const std::string& why) {
  set_state(error);
  tell(why);
}

bool Communicator::stopped() {
  if (aborted_ || stopping()) return true;
  if (is_open() && segment().broken == Segment::Broken::yes) {
    if (state_ == ncclSuccess || state_ == ncclInProgress) remember(segment().why);
    set_state(ncclInvalidUsage);
  }
  return state_ != ncclSuccess && state_ != ncclInProgress;
}

std::string Communicator::reason() const {
  return is_open() && segment().broken == Segment::Broken::yes ? segment().why : text_of(state_);
}

void Communicator::throw_reason() {
  if (segment().broken == Segment::Broken::yes) throw Failure(ncclInvalidUsage, segment().why);
  if (state_ != ncclSuccess && state_ != ncclInProgress)
    throw Failure(state_, fmt::format("{} has failed before: {}", place(), text_of(state_)));
  throw Failure(ncclInternalError, fmt::format("{} was aborted", place()));
}

void Communicator::hold_until_aborted() {
  for (;;) {
    const std::uint32_t heard = mine().bell.heard();
    if (aborted_ || stopping()) return;
    mine().bell.sleep(heard);
  }
}

void Communicator::abort() {
  aborted_ = true;
  end(Life::aborted);
  if (!is_open()) return;
  ++segment().aborted;
  ring_all();
}

void Communicator::complete_launch() {
  ++completed_;
  ring(rank());
}

}  // namespace tessera::sim::nccl
