// tessera why RUN: which rank a hanging job waited for.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <iterator>

#include "command.hpp"
#include "command_line.hpp"
#include "tessera/base/text_file.hpp"
#include "tessera/comm/call_trace.hpp"
#include "tessera/config/job_config.hpp"
#include "tessera/config/recorded.hpp"

namespace {

namespace fs = std::filesystem;
using tessera::comm::CallTrace;

/// comm.save_traces_folder as the run recorded it.
fs::path traces_folder(const fs::path& run) {
  const std::string toml = tessera::read_text(run / "config.toml").value_or("");
  const std::string name = tessera::config::recorded_text(toml, "comm.save_traces_folder");
  return run / (name.empty() ? tessera::config::Comm().save_traces_folder : name);
}

std::vector<CallTrace> read_traces(const fs::path& folder) {
  std::vector<CallTrace> traces;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored))
    if (entry.path().extension() == ".json")
      std::ranges::move(tessera::comm::call_traces_of(tessera::read_text(entry.path()).value_or("")),
                        std::back_inserter(traces));
  return traces;
}

/// Of each rank the first trace of the last hang. Where a job is being ended, a rank that stood still may go on.
std::vector<CallTrace> of_last_hang(std::vector<CallTrace> traces) {
  constexpr double kApart_seconds = 600;
  std::ranges::sort(traces, {}, &CallTrace::unix_seconds);
  std::vector<CallTrace> chosen;
  for (CallTrace& trace : traces) {
    const bool old = trace.unix_seconds < traces.back().unix_seconds - kApart_seconds;
    if (!old && std::ranges::find(chosen, trace.rank, &CallTrace::rank) == chosen.end()) chosen.push_back(trace);
  }
  return chosen;
}

int run(const tessera::app::Args& args) {
  std::string run_folder;
  tessera::app::Flags app(
      "Tells which rank a job waited for when it hung, and where, from the calls that its ranks left in "
      "comm.save_traces_folder.",
      "why");
  app.add_option("run", run_folder, "the run's folder (job.dump_folder)").required();
  if (!app.parse(args)) return 0;
  const fs::path folder = traces_folder(run_folder);
  const std::vector<CallTrace> traces = of_last_hang(read_traces(folder));
  tessera::require(!traces.empty(), tessera::ExitCode::usage,
                   "there are no traces in {}: the job did not hang, or comm.trace_buf_size was 0", folder.string());
  std::cout << fmt::format("{} of {} ranks left their last calls in {}\n", traces.size(), traces.front().ranks,
                           folder.string());
  const std::vector<std::string> lines = tessera::comm::who_holds_up(traces);
  for (const std::string& line : lines) std::cout << line << "\n";
  if (lines.empty()) std::cout << "no rank waits in a call\n";
  return 0;
}

const tessera::app::CommandRegistration registration{"why", "tell which rank a hanging job waited for", &run};

}  // namespace
