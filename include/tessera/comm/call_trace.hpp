// SPDX-License-Identifier: Apache-2.0
// What ranks leave of their last communication calls when a job hangs, and what it tells about the
// cause.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tessera::comm {

/// A call as a rank logged it.
struct TracedCall {
  std::string axis;        ///< of the communicator
  int first = -1;          ///< world rank of the communicator's first member; -1: unknown
  int stride = 0;          ///< distance of its members' world ranks; 0: they differ
  int rank = 0, size = 1;  ///< this rank's number in the communicator, and its number of members
  /// of this call on the communicator, from 1; groups of transfers have their own numbers
  std::int64_t number = 0;
  std::string name;    ///< "all_reduce(sum, f32, 1024 elements)", "group of 1 transfers"
  bool group = false;  ///< send and recv
  int peer = -1;       ///< of a group: the one member with which it exchanges; -1: several
  /// "issued", "waiting" (it holds its caller, or its stream), "done" or "failed"
  std::string state;
  double seconds = 0;  ///< since it is in that state
};

/// What one rank of a job was doing.
struct CallTrace {
  int rank = 0, ranks = 1;  ///< world rank, and number of ranks of the job
  double unix_seconds = 0;  ///< when this was written
  /// When the job started, the same on all its ranks; 0: unknown.
  double job_unix_seconds = 0;
  std::string host;
  std::int64_t step = 0;    ///< 0: before the first one
  double step_seconds = 0;  ///< since it began
  std::string place;        ///< in the step: "layers.14 backward"; empty: unknown
  std::string failure;      ///< empty: it has not failed
  /// For how long its process has not run, so that its calls may be over since; 0: it runs.
  double standstill_seconds = 0;
  std::vector<TracedCall> calls;  ///< oldest first
};

/// The last `limit` calls of each rank whose log this process can read: all ranks of the node, or
/// itself alone. `ranks`: of the job.
std::vector<CallTrace> traces_of_node(int ranks, std::size_t limit);

/// As JSON, and back. Throws Error(data) where `json` has no traces.
std::string text_of(std::span<const CallTrace> traces);
std::vector<CallTrace> call_traces_of(const std::string& json);

/// Of each rank the newest trace of the last hang, from the files *.json of a folder: of those of
/// one start of the job that were written within ten minutes before the newest one. That start is
/// `job_unix_seconds`, or the newest trace's. Empty where there are none. A warning names a file
/// that has no traces.
std::vector<CallTrace> traces_of_last_hang(const std::filesystem::path& folder,
                                           std::optional<double> job_unix_seconds = {});

/// Who holds the job up, in one line for each such rank: it has not entered a call in which another
/// one waits, and waits in none itself, or its process does not run. Also ranks that wait for each
/// other in a circle, members that differ in what they called, and a call that all members have
/// entered. Empty if no rank waits. Ranks of the job without a trace can be held up, too.
std::vector<std::string> who_holds_up(std::span<const CallTrace> traces);

}  // namespace tessera::comm
