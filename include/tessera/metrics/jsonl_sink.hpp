// SPDX-License-Identifier: Apache-2.0
// metrics.jsonl: one JSON object a line, one line a step, each step once, through kills and
// resumes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tessera/metrics/step_record.hpp"

namespace tessera::metrics {

/// One object without a line end: keys in StepRecord's order, then `extra`; 17 significant digits;
/// non-finite = null.
std::string to_json_line(const StepRecord& record);

/// Every whole line of a metrics.jsonl, in the file's order; null becomes NaN, numeric keys beyond
/// StepRecord's go into `extra`. A torn last line (a killed run) is passed over; any other line
/// that is not a record throws Error(data) with file:line.
std::vector<StepRecord> read_records(const std::filesystem::path& file);

class AppendFile;

/// Appends records to a file. Not thread-safe; one process (rank 0) owns the file.
class JsonlSink {
 public:
  /// Opens `file` for a run that continues after `resume_step` (0: from the beginning). Lines of
  /// later steps, lines that repeat a step and torn lines are dropped: by a new file renamed over
  /// the old one, so a kill at any time leaves one or the other. Throws Error(environment) naming
  /// the file.
  JsonlSink(std::filesystem::path file, std::int64_t resume_step);
  ~JsonlSink();
  JsonlSink(const JsonlSink&) = delete;
  JsonlSink& operator=(const JsonlSink&) = delete;

  /// Appends one line and hands it to the kernel. Steps must rise. When the disk is full throws
  /// Error(environment) naming the file, which then ends with the last whole line.
  void write(const StepRecord& record);

  std::int64_t last_step() const noexcept { return last_step_; }  ///< 0: none yet

 private:
  std::int64_t last_step_ = 0;
  std::unique_ptr<AppendFile> out_;
};

}  // namespace tessera::metrics
