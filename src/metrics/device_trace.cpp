// SPDX-License-Identifier: Apache-2.0
#include "tessera/metrics/device_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>

namespace tessera::metrics {
namespace {

constexpr std::size_t kShownKernels = 24, kNameWidth = 64;

bool is_word(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_';
}

/// `text` without parentheses and what is in them.
std::string without_arguments(std::string_view text) {
  std::string kept;
  int depth = 0;
  for (const char letter : text) {
    if (letter == '(') ++depth;
    if (depth == 0) kept += letter;
    if (letter == ')' && depth > 0) --depth;
  }
  return kept;
}

std::string without(std::string text, std::string_view part) {
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at))
    text.erase(at, part.size());
  return text;
}

std::string without_lambdas(std::string text) {
  for (auto at = text.find("::{"); at != std::string::npos; at = text.find("::{", at))
    text.erase(at, std::min(text.find('}', at), text.size() - 1) + 1 - at);
  return text;
}

struct Idle {
  double seconds = 0, longest = 0;
  std::string before = "the end";  ///< what ended the longest

  void add(double gap, std::string_view next) {
    seconds += gap;
    if (gap <= longest) return;
    longest = gap;
    before = next;
  }
};

/// Adds how long no span lasts inside [begin, end). `spans`: in the order of their begin.
void add_idle(Idle& idle, double begin, double end, std::span<const DeviceSpan> spans) {
  double until = begin;
  for (const DeviceSpan& span : spans) {
    if (span.end <= until || span.begin >= end) continue;
    if (span.begin > until) idle.add(span.begin - until, span.name);
    until = std::min(span.end, end);
  }
  idle.add(end - until, "the end");
}

struct Row {
  std::string name;
  int calls = 0;
  double seconds = 0;
};

/// The longest first.
std::vector<Row> rows_of(std::span<const DeviceSpan> spans) {
  std::map<std::string, Row> by_name;
  for (const DeviceSpan& span : spans) {
    Row& row = by_name[short_name(span.name)];
    ++row.calls;
    row.seconds += span.end - span.begin;
  }
  std::vector<Row> rows;
  for (auto& [name, row] : by_name) {
    row.name = name;
    rows.push_back(std::move(row));
  }
  std::ranges::stable_sort(rows, std::greater(), &Row::seconds);
  return rows;
}

std::string line(std::string_view name, int calls, double seconds, double all) {
  return fmt::format("\n  {:<{}.{}}{:>8}{:>12.3f}{:>8.1f} %", name, kNameWidth, kNameWidth, calls,
                     1e3 * seconds, 100 * seconds / all);
}

}  // namespace

std::string short_name(std::string_view kernel) {
  // "Memcpy HtoD (Pinned -> Device)" is no function.
  if (kernel.starts_with("Mem")) return std::string(kernel);
  std::string text = without(std::string(kernel), "(anonymous namespace)::");
  // A lambda is named by the function that has it.
  text = without(without(without_lambdas(without_arguments(text)), "::operator"), " const");
  if (text.starts_with("void ")) text.erase(0, 5);
  std::string name;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text.compare(at, 2, "::") == 0) {  // drops the word before it
      while (!name.empty() && is_word(name.back())) name.pop_back();
      ++at;
    } else {
      name += text[at];
    }
  }
  return name.empty() ? std::string(kernel) : name;
}

void add_streams(RankTrace& trace, std::span<const DeviceSpan> spans) {
  std::map<std::int64_t, std::vector<const DeviceSpan*>> streams;
  for (const DeviceSpan& span : spans) streams[span.stream].push_back(&span);
  for (auto& [stream, of_stream] : streams) {
    std::ranges::stable_sort(of_stream, {}, &DeviceSpan::begin);
    const int track = static_cast<int>(trace.tracks.size());
    trace.tracks.push_back(fmt::format("GPU stream {}", stream));
    double end = of_stream.front()->begin;
    for (const DeviceSpan* span : of_stream) {
      const double begin = std::max(span->begin, end);
      end = std::max(span->end, begin);
      trace.spans.push_back({short_name(span->name), track, begin, end, -1});
    }
  }
}

std::string kernel_table(const TracedSteps& steps, std::span<const DeviceSpan> spans) {
  std::vector<DeviceSpan> ordered(spans.begin(), spans.end());
  std::ranges::stable_sort(ordered, {}, &DeviceSpan::begin);
  double all = 0;
  Idle idle;
  for (const auto& [begin, end] : steps.times) {
    all += end - begin;
    add_idle(idle, begin, end, ordered);
  }
  if (all <= 0) return "";
  std::string text = fmt::format(
      "the GPU in {}: busy {:.1f} % of {:.1f} ms, idle {:.1f} ms, of which {:.1f} ms before {:.40}",
      steps.name, 100 * (1 - idle.seconds / all), 1e3 * all, 1e3 * idle.seconds, 1e3 * idle.longest,
      short_name(idle.before));
  text += fmt::format("\n  {:<{}}{:>8}{:>12}{:>10}", "kernel", kNameWidth, "calls", "ms", "share");
  const std::vector<Row> rows = rows_of(ordered);
  Row rest;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i < kShownKernels) {
      text += line(rows[i].name, rows[i].calls, rows[i].seconds, all);
    } else {
      rest.calls += rows[i].calls;
      rest.seconds += rows[i].seconds;
    }
  }
  if (rest.calls > 0)
    text +=
        line(fmt::format("{} others", rows.size() - kShownKernels), rest.calls, rest.seconds, all);
  return text;
}

}  // namespace tessera::metrics
