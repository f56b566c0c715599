// SPDX-License-Identifier: Apache-2.0
// Where the time of some steps goes, as a picture: the format of chrome://tracing and Perfetto.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tessera::metrics {

/// A piece of time on a track, in seconds of any clock that all ranks share.
struct TraceSpan {
  std::string name;
  int track = 0;  ///< index of RankTrace::tracks; spans of a track nest or follow each other
  double begin = 0, end = 0;
  std::int64_t elements = -1;  ///< that a communication call moved; -1: none
};

struct RankTrace {
  int rank = 0;
  std::string name;                 ///< "rank 3 (pp0.r0.s1.cp0.tp1)"
  std::vector<std::string> tracks;  ///< "steps", "tp"
  std::vector<TraceSpan> spans;
};

/// Its events, with commas between: a process for each rank and a thread for each track. Names of
/// ranks and tracks must need no escapes in JSON.
std::string trace_events(const RankTrace& trace);
/// Figures at one time, which are drawn as areas on top of each other.
std::string counter_event(int rank, std::string_view name, double seconds,
                          const std::vector<std::pair<std::string_view, std::int64_t>>& figures);
/// A whole file of events, of one rank or of several.
std::string trace_file(const std::vector<std::string>& events);

/// What to add to this rank's clock for that of rank 0, from times that both read after the same
/// barriers: the median of their differences, which one late rank does not move.
double clock_offset(std::vector<double> of_rank_zero, const std::vector<double>& own);

}  // namespace tessera::metrics
