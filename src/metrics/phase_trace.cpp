// SPDX-License-Identifier: Apache-2.0
#include "tessera/metrics/phase_trace.hpp"

#include <fmt/format.h>

#include "tessera/base/atomic_file.hpp"
#include "tessera/base/error.hpp"

namespace tessera::metrics {
void PhaseTrace::begin_step(std::int64_t step) {
  if (!traced(step)) return;
  step_began_ = monotonic_seconds();
  timer_.observe([this](Phase phase, double begin, double end) {
    if (end > begin) spans_.push_back({std::string(name_of(phase)), begin, end});
  });
}

void PhaseTrace::end_step(std::int64_t step) {
  if (!traced(step)) return;
  timer_.observe({});
  spans_.push_back({fmt::format("step {}", step), step_began_, monotonic_seconds()});
  if (step % options_.every != 0) return;
  write(step);
  spans_.clear();
}

void PhaseTrace::write(std::int64_t step) const {
  std::string text = "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [";
  const double origin = spans_.empty() ? 0 : spans_.front().begin;
  for (const Span& span : spans_)
    text += fmt::format(
        "{}\n  {{\"name\": \"{}\", \"ph\": \"X\", \"ts\": {:.3f}, \"dur\": {:.3f}, \"pid\": {}, "
        "\"tid\": 0}}",
        &span == &spans_.front() ? "" : ",", span.name, (span.begin - origin) * 1e6,
        (span.end - span.begin) * 1e6, options_.rank);
  text += "\n]}\n";
  const std::filesystem::path folder = options_.folder / fmt::format("iteration_{}", step);
  std::error_code problem;
  std::filesystem::create_directories(folder, problem);
  require(!problem, ExitCode::environment,
          "cannot make the folder {} for traces ({}); set profiling.save_traces_folder",
          folder.string(), problem.message());
  write_file_atomically(folder / fmt::format("rank{}_trace.json", options_.rank), text);
}

}  // namespace tessera::metrics
