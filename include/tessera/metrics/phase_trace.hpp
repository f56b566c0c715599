// SPDX-License-Identifier: Apache-2.0
// Where the time of some steps goes, as a picture: the format of chrome://tracing and Perfetto.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "tessera/metrics/meter.hpp"

namespace tessera::metrics {

struct TraceOptions {
  std::filesystem::path folder;  ///< traces are written to folder/iteration_STEP/rankN_trace.json
  std::int64_t every = 10, steps = 1;  ///< of each `every` steps the last `steps` are traced
  int rank = 0;
};

/// Traces the phases of one rank. The timer must outlive this.
class PhaseTrace {
 public:
  PhaseTrace(TraceOptions options, PhaseTimer& timer)
      : options_(std::move(options)), timer_(timer) {}
  ~PhaseTrace() { timer_.observe({}); }
  PhaseTrace(const PhaseTrace&) = delete;
  PhaseTrace& operator=(const PhaseTrace&) = delete;

  /// Steps count from 1.
  void begin_step(std::int64_t step);
  /// Writes the file after the last step of a trace. Throws Error(environment).
  void end_step(std::int64_t step);

 private:
  struct Span {
    std::string name;
    double begin, end;
  };
  bool traced(std::int64_t step) const {
    return (step - 1) % options_.every >= options_.every - options_.steps;
  }
  void write(std::int64_t step) const;

  TraceOptions options_;
  PhaseTimer& timer_;
  std::vector<Span> spans_;
  double step_began_ = 0;
};

}  // namespace tessera::metrics
