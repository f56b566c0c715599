// SPDX-License-Identifier: Apache-2.0
// Where the time of a run went, over all ranks, and what may win some of it back.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tessera::metrics {

/// Seconds of one rank by what it did, in the order of the table's rows.
using Times = std::vector<std::pair<std::string, double>>;

inline constexpr std::string_view kWaitingIn = "waiting in ";  ///< "waiting in tp": for its ranks

/// Adds to the row of that name, which is appended where there is none.
void add_seconds(Times& times, std::string_view name, double seconds);

/// As text that travels between ranks, and back.
std::string text_of(const Times& times);
Times times_of(std::string_view text);

/// A key that may win back what a row loses.
struct TimeHint {
  std::string row;   ///< "waiting in tp", "data", "checkpoint"
  std::string flag;  ///< "--parallelism.enable_async_tensor_parallel"
};

/// Lines, each with its end: a row for each part of the run with its least, mean and greatest time,
/// their spread, and its share of all ranks' time. Without rows of less than 0.05 %.
std::string time_table(std::span<const Times> of_ranks);

/// One line, with its end, for each loss above 3 % of all ranks' time: waiting, data, checkpoint.
std::string time_notes(std::span<const Times> of_ranks, std::span<const TimeHint> hints);

}  // namespace tessera::metrics
