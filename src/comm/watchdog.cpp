// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <set>
#include <thread>

#include "alarm.hpp"
#include "call_log.hpp"
#include "hook_list.hpp"
#include "peers.hpp"
#include "probe.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/log.hpp"
#include "tessera/comm/world.hpp"
#include "watch.hpp"

namespace tessera::comm {
namespace {

constexpr std::size_t kReported = 100;

struct Probes {
  std::mutex mutex;
  std::set<Probe*> all;
};
Probes& probes() {
  static auto* instance = new Probes;  // outlives every probe
  return *instance;
}

std::string progress_of(const CallPage& page, std::int64_t now) {
  const std::int64_t beat = page.heartbeat_ns;
  if (beat == 0) return "before the first step";
  const std::string place = place_of(page);
  return fmt::format("step {}, begun {:.1f} s ago{}{}", page.step.load(),
                     static_cast<double>(now - beat) * 1e-9, place.empty() ? "" : ", ", place);
}

std::string report_of(const CallView& stuck, int rank) {
  const std::int64_t now = now_ns();
  std::string text = fmt::format("rank {} ({}) hangs in {}\n", rank, progress_of(call_page(), now),
                                 describe(stuck, now));
  for (int other : readable_ranks()) {
    const CallPage* page = page_of(other);
    if (other == rank || !page) continue;
    text += fmt::format("  rank {} ({}): {}\n", other, progress_of(*page, now), activity_of(other));
  }
  return text;
}

std::atomic<std::int64_t> patience_ns{0};

/// The call that a caller has been held by for longest, if that is longer than `timeout` and this
/// process has run for as long.
const CallView* longest_held(const std::vector<CallView>& calls, std::chrono::nanoseconds timeout,
                             std::int64_t ran_since_ns) {
  const std::int64_t since = now_ns() - timeout.count();
  const CallView* longest = nullptr;
  for (const CallView& call : calls) {
    if (call.state != CallState::waited_for || std::max(call.waited_ns, ran_since_ns) > since)
      continue;
    if (!longest || call.waited_ns < longest->waited_ns) longest = &call;
  }
  return longest;
}

}  // namespace

std::chrono::nanoseconds patience() noexcept {
  return std::chrono::nanoseconds(patience_ns.load());
}

Probe::Probe() {
  const std::lock_guard lock(probes().mutex);
  probes().all.insert(this);
}

Probe::~Probe() { retire(); }

void Probe::retire() noexcept {
  const std::lock_guard lock(probes().mutex);
  probes().all.erase(this);
}

std::optional<Error> look_at_probes() {
  const std::lock_guard lock(probes().mutex);
  std::optional<Error> first;
  for (Probe* probe : probes().all) {
    std::optional<Error> failure = probe->look();
    if (!first) first = std::move(failure);
  }
  return first;
}

struct Watchdog::Impl {
  std::chrono::milliseconds timeout;
  int rank;
  Handler handler;
  Also also;
  std::uint64_t reported = 0, noticed = 0;  ///< ticket of the call that was reported last
  std::int64_t ran_since_ns = 0;            ///< end of the last pause of this process
  std::mutex mutex;
  std::condition_variable changed;
  bool stopping = false;
  std::thread thread;

  void watch() {
    using std::chrono::milliseconds;
    const auto shortest = also.notice ? std::min(timeout, also.notice_after) : timeout;
    const auto tick = std::clamp(shortest / 10, milliseconds(10), milliseconds(1000));
    std::unique_lock lock(mutex);
    note_look();
    std::int64_t before = now_ns();
    while (!changed.wait_for(lock, tick, [this] { return stopping; })) {
      lock.unlock();
      // A process that was stopped is let go when its job is ended: what it would report now is not
      // what held others up. Where the whole job was, all may continue.
      if (now_ns() - before > std::chrono::nanoseconds(tick).count() + kStandstill_ns) {
        ignore_alarm();
        ran_since_ns = now_ns();
      }
      look();
      before = now_ns();
      lock.lock();
    }
  }

  void look() {
    std::optional<Error> failure = look_at_probes();
    note_look();
    if (!failure && also.look) failure = also.look();
    if (failure) tell(handler, *failure);
    if (also.leave_traces)
      answer_alarm([this] {
        const NoLook telling;
        also.leave_traces();
      });
    const auto calls = recent(call_page(), CallPage::kRecords);
    if (also.notice) look_for(calls, also.notice_after, also.notice, noticed);
    look_for(calls, timeout, handler, reported);
  }

  void look_for(const std::vector<CallView>& calls, std::chrono::milliseconds limit,
                const Handler& told, std::uint64_t& last) const {
    const CallView* stuck =
        longest_held(calls, std::max<std::chrono::nanoseconds>(limit, patience()), ran_since_ns);
    if (!stuck || stuck->ticket == last) return;
    last = stuck->ticket;
    tell(told, Error(ExitCode::communication, report_of(*stuck, rank)));
  }

  static void tell(const Handler& told, const Error& report) {
    const NoLook telling;
    try {
      told(report);
    } catch (const std::exception& error) {
      log::error("the watchdog's handler failed: {}; its report was: {}", error.what(),
                 report.what());
    }
  }
};

namespace {
std::atomic<bool> watched{false};
}

Watchdog::Patience::Patience(std::chrono::milliseconds timeout) : before_ns_(patience_ns) {
  patience_ns = std::max(before_ns_, std::chrono::nanoseconds(timeout).count());
}

Watchdog::Patience::~Patience() { patience_ns = before_ns_; }

Watchdog::Watchdog(std::chrono::milliseconds timeout, int rank, Handler handler)
    : Watchdog(timeout, rank, std::move(handler), Also()) {}

Watchdog::Watchdog(std::chrono::milliseconds timeout, int rank, Handler handler, Also also) {
  TESSERA_EXPECT(!watched.exchange(true), "a process has one watchdog");
  impl_ = std::make_unique<Impl>();
  impl_->timeout = timeout;
  impl_->rank = rank;
  impl_->handler = std::move(handler);
  impl_->also = std::move(also);
  impl_->thread = std::thread([this] { impl_->watch(); });
}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->stopping = true;
  }
  impl_->changed.notify_all();
  impl_->thread.join();
  call_page().looked_ns.store(0, std::memory_order_relaxed);
  watched = false;
}

void Watchdog::heartbeat(std::int64_t step) {
  CallPage& page = call_page();
  page.step.store(step, std::memory_order_relaxed);
  page.heartbeat_ns.store(now_ns(), std::memory_order_relaxed);
}

void Watchdog::at(std::string_view unit, std::string_view pass) noexcept {
  note_place(call_page(), unit, pass);
  for (const auto& hook : *hooks()) hook->comes_to(unit, pass);
}

Watchdog::Detour::Detour() : exceptions_(std::uncaught_exceptions()) {
  UnitAndPass now = unit_and_pass(call_page());
  unit_ = std::move(now.unit);
  pass_ = std::move(now.pass);
}

Watchdog::Detour::~Detour() {
  if (std::uncaught_exceptions() == exceptions_) at(unit_, pass_);
}

std::string Watchdog::place() { return place_of(call_page()); }

Watchdog::Traces Watchdog::leave_traces_everywhere(const std::function<void()>& leave,
                                                   std::chrono::milliseconds deadline) {
  if (!begin_traces()) return Traces::by_another;
  leave();
  end_of_traces();
  return raise_alarm(leave, deadline) ? Traces::all : Traces::some;
}

std::string Watchdog::recent_calls() {
  const std::int64_t now = now_ns();
  std::string text;
  for (const CallView& call : recent(call_page(), kReported)) text += describe(call, now) + "\n";
  return text;
}

}  // namespace tessera::comm
