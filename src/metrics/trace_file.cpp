// SPDX-License-Identifier: Apache-2.0
#include "tessera/metrics/trace_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "tessera/base/json.hpp"
#include "tessera/metrics/meter.hpp"

namespace tessera::metrics {
namespace {

std::string label(const char* what, int pid, int tid, const std::string& name) {
  return fmt::format(
      "{{\"name\": \"{}\", \"ph\": \"M\", \"ts\": 0, \"dur\": 0, \"pid\": {}, \"tid\": {}, "
      "\"args\": {{\"name\": \"{}\"}}}}",
      what, pid, tid, name);
}

std::string event(const TraceSpan& span, int pid) {
  return fmt::format(
      "{{\"name\": {}, \"ph\": \"X\", \"ts\": {:.3f}, \"dur\": {:.3f}, \"pid\": {}, "
      "\"tid\": {}{}}}",
      json_text(nlohmann::json(span.name)), span.begin * 1e6, (span.end - span.begin) * 1e6, pid,
      span.track,
      span.elements < 0 ? "" : fmt::format(", \"args\": {{\"elements\": {}}}", span.elements));
}

}  // namespace

std::string trace_events(const RankTrace& trace) {
  std::string text = label("process_name", trace.rank, 0, trace.name);
  for (std::size_t track = 0; track < trace.tracks.size(); ++track)
    text += ",\n" + label("thread_name", trace.rank, static_cast<int>(track), trace.tracks[track]);
  for (const TraceSpan& span : trace.spans) text += ",\n" + event(span, trace.rank);
  return text;
}

std::string counter_event(int rank, std::string_view name, double seconds,
                          const std::vector<std::pair<std::string_view, std::int64_t>>& figures) {
  std::string values;
  for (const auto& [kind, value] : figures)
    values += fmt::format("{}\"{}\": {}", values.empty() ? "" : ", ", kind, value);
  return fmt::format(
      "{{\"name\": \"{}\", \"ph\": \"C\", \"ts\": {:.3f}, \"dur\": 0, \"pid\": {}, \"tid\": 0, "
      "\"args\": {{{}}}}}",
      name, seconds * 1e6, rank, values);
}

std::string trace_file(const std::vector<std::string>& events) {
  return fmt::format("{{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n{}\n]}}\n",
                     fmt::join(events, ",\n"));
}

double clock_offset(std::vector<double> of_rank_zero, const std::vector<double>& own) {
  Window differences(own.size());
  for (std::size_t i = 0; i < own.size(); ++i) differences.add(of_rank_zero[i] - own[i]);
  return differences.median();
}

}  // namespace tessera::metrics
