#include "tessera/comm/call_trace.hpp"

#include <chrono>
#include <nlohmann/json.hpp>

#include "call_log.hpp"
#include "peers.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/host_name.hpp"
#include "tessera/base/json.hpp"

namespace tessera::comm {
namespace {

double seconds_since(std::int64_t then, std::int64_t now) { return static_cast<double>(now - then) * 1e-9; }

/// "all_reduce(sum, f32, 1024 elements), call 17" without its number.
std::string name_without_number(const CallInfo& info) {
  const std::string text = describe(info);
  return text.substr(0, text.rfind(", "));
}

TracedCall traced(const CallView& view, std::int64_t now) {
  TracedCall call;
  call.axis = view.axis;
  call.first = view.members.first;
  call.stride = view.members.stride;
  call.rank = view.rank;
  call.size = view.size;
  call.number = static_cast<std::int64_t>(view.info.sequence);
  call.name = name_without_number(view.info);
  call.group = view.info.call == Call::group;
  call.peer = view.peer;
  switch (view.state) {
    case CallState::issued:
      call.state = "issued", call.seconds = seconds_since(view.issued_ns, now);
      break;
    case CallState::waited_for:
      call.state = "waiting", call.seconds = seconds_since(view.waited_ns, now);
      break;
    case CallState::done:
      call.state = "done", call.seconds = seconds_since(view.done_ns, now);
      break;
    case CallState::failed:
      call.state = "failed", call.seconds = seconds_since(view.done_ns, now);
      break;
  }
  return call;
}

CallTrace trace_of(int rank, int ranks, std::size_t limit, std::int64_t now) {
  const CallPage& page = *page_of(rank);
  CallTrace trace;
  trace.rank = rank;
  trace.ranks = ranks;
  trace.unix_seconds = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  trace.host = host_name();
  trace.step = page.step.load();
  if (const std::int64_t beat = page.heartbeat_ns.load(); beat > 0) trace.step_seconds = seconds_since(beat, now);
  trace.failure = failure_of(rank);
  for (const CallView& view : recent(page, limit)) trace.calls.push_back(traced(view, now));
  return trace;
}

}  // namespace

std::vector<CallTrace> traces_of_node(int ranks, std::size_t limit) {
  const std::int64_t now = now_ns();
  std::vector<CallTrace> traces;
  for (const int rank : readable_ranks()) traces.push_back(trace_of(rank, ranks, limit, now));
  return traces;
}

namespace {

nlohmann::ordered_json json_of(const TracedCall& c) {
  return {{"axis", c.axis}, {"first", c.first},   {"stride", c.stride},  {"rank", c.rank},
          {"size", c.size}, {"number", c.number}, {"name", c.name},      {"group", c.group},
          {"peer", c.peer}, {"state", c.state},   {"seconds", c.seconds}};
}

TracedCall call_of(const nlohmann::json& json) {
  TracedCall call;
  const auto take = [&](const char* key, auto& value) { json.at(key).get_to(value); };
  take("axis", call.axis), take("first", call.first), take("stride", call.stride), take("rank", call.rank);
  take("size", call.size), take("number", call.number), take("name", call.name), take("group", call.group);
  take("peer", call.peer), take("state", call.state), take("seconds", call.seconds);
  return call;
}

CallTrace trace_of(const nlohmann::json& json) {
  CallTrace trace;
  const auto take = [&](const char* key, auto& value) { json.at(key).get_to(value); };
  take("rank", trace.rank), take("ranks", trace.ranks), take("unix_seconds", trace.unix_seconds);
  take("host", trace.host), take("step", trace.step), take("step_seconds", trace.step_seconds);
  take("failure", trace.failure);
  for (const nlohmann::json& call : json.at("calls")) trace.calls.push_back(call_of(call));
  return trace;
}

}  // namespace

std::string text_of(std::span<const CallTrace> traces) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const CallTrace& trace : traces) {
    nlohmann::ordered_json calls = nlohmann::ordered_json::array();
    for (const TracedCall& call : trace.calls) calls.push_back(json_of(call));
    all.push_back({{"rank", trace.rank},
                   {"ranks", trace.ranks},
                   {"unix_seconds", trace.unix_seconds},
                   {"host", trace.host},
                   {"step", trace.step},
                   {"step_seconds", trace.step_seconds},
                   {"failure", trace.failure},
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
  fail(ExitCode::data, "there are no traces of communication calls in it ({}); remove it", error.what());
}

}  // namespace tessera::comm
