// SPDX-License-Identifier: Apache-2.0
#include "call_log.hpp"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <bit>

#include "hook_list.hpp"

namespace tessera::comm {
namespace {

constexpr std::array<std::string_view, 11> kCallNames{
    "all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all",     "all_to_all_v",
    "group",      "barrier",    "split",          "graph",     "register_memory"};
constexpr std::array<std::string_view, 3> kOpNames{"sum", "max", "min"};

CallPage own_page{};
std::atomic<CallPage*> current_page{&own_page};

CallSubject subject_of(const CallRecord& record) noexcept {
  CallWords words;
  for (std::size_t i = 0; i < words.size(); ++i)
    words[i] = record.subject[i].load(std::memory_order_acquire);
  auto subject = std::bit_cast<CallSubject>(words);
  // half of another call's, when the line is being used again
  subject.axis[sizeof(subject.axis) - 1] = '\0';
  return subject;
}

}  // namespace

double seconds_between(std::int64_t from, std::int64_t to) noexcept {
  return static_cast<double>(to - from) * 1e-9;
}

std::string_view name_of(Call call) noexcept { return kCallNames[static_cast<std::size_t>(call)]; }
std::string_view name_of(Op op) noexcept { return kOpNames[static_cast<std::size_t>(op)]; }

std::string title(const CallInfo& info) {
  const std::string name(name_of(info.call));
  const bool reduces = info.call == Call::all_reduce || info.call == Call::reduce_scatter;
  const std::string detail = reduces          ? fmt::format("{}, ", name_of(info.op))
                             : info.root >= 0 ? fmt::format("root {}, ", info.root)
                                              : std::string();
  switch (info.call) {
    case Call::barrier:
    case Call::split:
      return name;
    case Call::group:
      return fmt::format("group of {} transfers", info.count);
    case Call::graph:
      return fmt::format("graph of {} calls", info.count);
    default:
      return fmt::format("{}({}{}, {} elements)", name, detail, name_of(info.dtype), info.count);
  }
}

std::string describe(const CallInfo& info) {
  return fmt::format("{}, {} {}", title(info), info.call == Call::group ? "group" : "call",
                     info.sequence);
}

std::int64_t now_ns() noexcept {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

CallPage& call_page() noexcept { return *current_page.load(std::memory_order_acquire); }

void use_call_page(CallPage* page) noexcept {
  current_page.store(page ? page : &own_page, std::memory_order_release);
}

void note_look() noexcept { call_page().looked_ns.store(now_ns(), std::memory_order_relaxed); }

NoLook::NoLook() noexcept { call_page().looked_ns.store(0, std::memory_order_relaxed); }

double standstill_seconds(const CallPage& page, std::int64_t now) noexcept {
  const std::int64_t looked = page.looked_ns.load(std::memory_order_relaxed);
  return looked == 0 || now - looked < kStandstill_ns ? 0 : seconds_between(looked, now);
}

/// The text of a place is the unit, one of these, and the pass.
constexpr char kBeforePass = '\n';

void note_place(CallPage& page, std::string_view unit, std::string_view pass) noexcept {
  std::array<char, sizeof(page.place)> text{};
  std::size_t used = unit.copy(text.data(), text.size() - 1);
  if (used < text.size() - 1) text[used++] = kBeforePass;
  pass.copy(text.data() + used, text.size() - 1 - used);
  const auto words =
      std::bit_cast<std::array<std::uint64_t, sizeof(text) / sizeof(std::uint64_t)>>(text);
  for (std::size_t i = 0; i < words.size(); ++i)
    page.place[i].store(words[i], std::memory_order_relaxed);
}

UnitAndPass unit_and_pass(const CallPage& page) {
  std::array<std::uint64_t, std::tuple_size_v<decltype(page.place)>> words{};
  for (std::size_t i = 0; i < words.size(); ++i)
    words[i] = page.place[i].load(std::memory_order_relaxed);
  const auto text = std::bit_cast<std::array<char, sizeof(words)>>(words);
  const auto end = std::ranges::find(text, '\0');
  const auto between = std::find(text.begin(), end, kBeforePass);
  return {{text.begin(), between}, {between == end ? end : between + 1, end}};
}

std::string place_of(const CallPage& page) {
  const auto [unit, pass] = unit_and_pass(page);
  return unit + (unit.empty() || pass.empty() ? "" : " ") + pass;
}

LoggedCall::LoggedCall(const CallInfo& info, int rank, int size, std::string_view axis,
                       Members members, int peer, std::span<const Buffer> in) {
  const std::uint64_t ticket = call_page().calls.fetch_add(1, std::memory_order_relaxed) + 1;
  for (const auto& hook : *hooks())
    hook->before({ticket, info, axis, rank, size, members, peer, in});
  ticket_ = ticket;
}

/// A call without a ticket is part of another one, of which the hooks know.
template <class Tell>
void LoggedCall::tell(Tell tell) const noexcept {
  if (ticket_ == 0) return;
  for (const auto& hook : *hooks()) tell(*hook);
}

void LoggedCall::waited_for() noexcept {
  tell([this](Hook& hook) { hook.waits(ticket_); });
}

void LoggedCall::resumed() noexcept {
  tell([this](Hook& hook) { hook.goes_on(ticket_); });
}

void LoggedCall::ended(CallEnd end) noexcept {
  tell([&](Hook& hook) { hook.after(ticket_, end); });
}

namespace {

class CallRecorder final : public Hook {
 public:
  void before(const HookedCall& call) override {
    CallRecord& record = record_of(call.ticket);
    record.ticket.store(0, std::memory_order_relaxed);
    CallSubject subject{call.info, call.rank, call.size, call.members, call.peer, {}};
    call.axis.copy(subject.axis, sizeof(subject.axis) - 1);
    const auto words = std::bit_cast<CallWords>(subject);
    for (std::size_t i = 0; i < words.size(); ++i)
      record.subject[i].store(words[i], std::memory_order_release);
    record.state.store(CallState::issued, std::memory_order_release);
    record.issued_ns.store(now_ns(), std::memory_order_release);
    record.ticket.store(call.ticket, std::memory_order_release);
  }
  void waits(std::uint64_t ticket) noexcept override {
    CallRecord& record = record_of(ticket);
    if (!holds(record, ticket)) return;
    record.waited_ns.store(now_ns(), std::memory_order_release);
    record.state.store(CallState::waited_for, std::memory_order_release);
  }
  void goes_on(std::uint64_t ticket) noexcept override {
    CallRecord& record = record_of(ticket);
    if (holds(record, ticket)) record.state.store(CallState::issued, std::memory_order_release);
  }
  void after(std::uint64_t ticket, CallEnd end) noexcept override {
    CallRecord& record = record_of(ticket);
    if (!holds(record, ticket)) return;
    record.done_ns.store(now_ns(), std::memory_order_release);
    record.state.store(end == CallEnd::done ? CallState::done : CallState::failed,
                       std::memory_order_release);
  }

 private:
  static CallRecord& record_of(std::uint64_t ticket) noexcept {
    return call_page().records[ticket % CallPage::kRecords];
  }
  /// Whether the line has not been used again.
  static bool holds(const CallRecord& record, std::uint64_t ticket) noexcept {
    return record.ticket.load(std::memory_order_relaxed) == ticket;
  }
};

}  // namespace

std::shared_ptr<Hook> make_call_recorder() { return std::make_shared<CallRecorder>(); }

std::vector<CallView> recent(const CallPage& page, std::size_t limit) {
  std::vector<CallView> views;
  for (const CallRecord& record : page.records) {
    const std::uint64_t ticket = record.ticket.load(std::memory_order_acquire);
    if (ticket == 0) continue;
    const CallSubject subject = subject_of(record);
    CallView view{ticket,         record.state,    record.issued_ns, record.waited_ns,
                  record.done_ns, subject.info,    subject.rank,     subject.size,
                  subject.peer,   subject.members, subject.axis};
    if (record.ticket.load(std::memory_order_acquire) == ticket) views.push_back(std::move(view));
  }
  std::sort(views.begin(), views.end(),
            [](const CallView& a, const CallView& b) { return a.ticket < b.ticket; });
  if (views.size() > limit)
    views.erase(views.begin(), views.end() - static_cast<std::ptrdiff_t>(limit));
  return views;
}

std::string describe(const CallView& view, std::int64_t now) {
  const std::string what =
      fmt::format("{} {}/{}: {}", view.axis, view.rank, view.size, describe(view.info));
  switch (view.state) {
    case CallState::issued:
      return fmt::format("{}: issued {:.1f} s ago", what, seconds_between(view.issued_ns, now));
    case CallState::waited_for:
      return fmt::format("{}: waiting for {:.1f} s", what, seconds_between(view.waited_ns, now));
    default:
      return fmt::format("{}: {} {:.6f} s, {:.1f} s ago", what,
                         view.state == CallState::done ? "done in" : "failed after",
                         seconds_between(view.issued_ns, view.done_ns),
                         seconds_between(view.done_ns, now));
  }
}

}  // namespace tessera::comm
