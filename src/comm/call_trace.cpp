// SPDX-License-Identifier: Apache-2.0
#include "tessera/comm/call_trace.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "call_log.hpp"
#include "peers.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/host_name.hpp"
#include "tessera/base/json.hpp"
#include "tessera/base/log.hpp"
#include "tessera/base/text_file.hpp"

namespace tessera::comm {
namespace {

/// Its name in a trace, and when the call came to it.
std::pair<const char*, std::int64_t> state_of(const CallView& view) {
  switch (view.state) {
    case CallState::issued:
      return {"issued", view.issued_ns};
    case CallState::waited_for:
      return {"waiting", view.waited_ns};
    case CallState::done:
      return {"done", view.done_ns};
    case CallState::failed:
      return {"failed", view.done_ns};
  }
  return {"", 0};
}

TracedCall traced(const CallView& view, std::int64_t now) {
  TracedCall call;
  call.axis = view.axis;
  call.first = view.members.first;
  call.stride = view.members.stride;
  call.rank = view.rank;
  call.size = view.size;
  call.number = static_cast<std::int64_t>(view.info.sequence);
  call.name = title(view.info);
  call.group = view.info.call == Call::group;
  call.peer = view.peer;
  const auto [state, since] = state_of(view);
  call.state = state;
  call.seconds = seconds_between(since, now);
  return call;
}

CallTrace trace_of(int rank, int ranks, std::size_t limit, std::int64_t now) {
  const CallPage& page = *page_of(rank);
  CallTrace trace;
  trace.rank = rank;
  trace.ranks = ranks;
  trace.unix_seconds =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  trace.job_unix_seconds = job_start();
  trace.host = host_name();
  trace.step = page.step.load();
  if (const std::int64_t beat = page.heartbeat_ns.load(); beat > 0)
    trace.step_seconds = seconds_between(beat, now);
  trace.place = place_of(page);
  trace.failure = failure_of(rank);
  trace.standstill_seconds = standstill_seconds(page, now);
  for (const CallView& view : recent(page, limit)) trace.calls.push_back(traced(view, now));
  return trace;
}

nlohmann::ordered_json json_of(const TracedCall& c) {
  return {{"axis", c.axis}, {"first", c.first},   {"stride", c.stride},  {"rank", c.rank},
          {"size", c.size}, {"number", c.number}, {"name", c.name},      {"group", c.group},
          {"peer", c.peer}, {"state", c.state},   {"seconds", c.seconds}};
}

TracedCall call_of(const nlohmann::json& json) {
  TracedCall call;
  const auto take = [&](const char* key, auto& value) { json.at(key).get_to(value); };
  take("axis", call.axis), take("first", call.first), take("stride", call.stride),
      take("rank", call.rank);
  take("size", call.size), take("number", call.number), take("name", call.name),
      take("group", call.group);
  take("peer", call.peer), take("state", call.state), take("seconds", call.seconds);
  return call;
}

/// False for numbers that no rank writes: a damaged file has them.
bool is_possible(const CallTrace& trace) {
  constexpr double kLatest_seconds = 1e11;  // in 3,000 years
  const auto fits = [](int rank, int size) { return 0 <= rank && rank < size; };
  return fits(trace.rank, trace.ranks) && trace.unix_seconds >= 0 &&
         trace.unix_seconds < kLatest_seconds &&
         std::ranges::all_of(trace.calls, [&](const TracedCall& call) {
           return fits(call.rank, call.size) && call.size <= trace.ranks;
         });
}

CallTrace trace_of(const nlohmann::json& json) {
  CallTrace trace;
  const auto take = [&](const char* key, auto& value) { json.at(key).get_to(value); };
  take("rank", trace.rank), take("ranks", trace.ranks), take("unix_seconds", trace.unix_seconds);
  trace.job_unix_seconds = json.value("job_unix_seconds", 0.0);
  take("host", trace.host), take("step", trace.step), take("step_seconds", trace.step_seconds);
  take("place", trace.place);
  take("failure", trace.failure);
  trace.standstill_seconds = json.value("standstill_seconds", 0.0);
  for (const nlohmann::json& call : json.at("calls")) trace.calls.push_back(call_of(call));
  require(is_possible(trace), ExitCode::data,
          "no traces of communication calls (a number is out of range); remove the file");
  return trace;
}

}  // namespace

std::vector<CallTrace> traces_of_node(int ranks, std::size_t limit) {
  const std::int64_t now = now_ns();
  std::vector<CallTrace> traces;
  for (const int rank : readable_ranks()) traces.push_back(trace_of(rank, ranks, limit, now));
  return traces;
}

std::string text_of(std::span<const CallTrace> traces) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const CallTrace& trace : traces) {
    nlohmann::ordered_json calls = nlohmann::ordered_json::array();
    for (const TracedCall& call : trace.calls) calls.push_back(json_of(call));
    all.push_back({{"rank", trace.rank},
                   {"ranks", trace.ranks},
                   {"unix_seconds", trace.unix_seconds},
                   {"job_unix_seconds", trace.job_unix_seconds},
                   {"host", trace.host},
                   {"step", trace.step},
                   {"step_seconds", trace.step_seconds},
                   {"place", trace.place},
                   {"failure", trace.failure},
                   {"standstill_seconds", trace.standstill_seconds},
                   {"calls", std::move(calls)}});
  }
  return json_text(all) + "\n";
}

std::vector<CallTrace> call_traces_of(const std::string& text) try {
  std::vector<CallTrace> traces;
  const nlohmann::json all = parse_valid_json(text);
  for (const nlohmann::json& json : all) traces.push_back(trace_of(json));
  return traces;
} catch (const nlohmann::json::exception& error) {
  fail(ExitCode::data, "no traces of communication calls ({}); remove the file", error.what());
}

std::vector<CallTrace> traces_of_last_hang(const std::filesystem::path& folder,
                                           std::optional<double> job_unix_seconds) {
  constexpr double kApart_seconds = 600;
  std::vector<CallTrace> all, chosen;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    if (entry.path().extension() != ".json") continue;
    try {
      std::ranges::move(call_traces_of(read_text(entry.path()).value_or("")),
                        std::back_inserter(all));
    } catch (const Error& error) {
      log::warning("{}: {}", entry.path().string(), error.what());
    }
  }
  std::ranges::sort(all, std::greater(), &CallTrace::unix_seconds);
  if (!job_unix_seconds && !all.empty()) job_unix_seconds = all.front().job_unix_seconds;
  std::erase_if(all,
                [&](const CallTrace& trace) { return trace.job_unix_seconds != job_unix_seconds; });
  for (CallTrace& trace : all) {
    const bool old = trace.unix_seconds < all.front().unix_seconds - kApart_seconds;
    const auto same = [&](const CallTrace& other) { return other.rank == trace.rank; };
    if (!old && std::ranges::none_of(chosen, same)) chosen.push_back(trace);
  }
  return chosen;
}

}  // namespace tessera::comm
