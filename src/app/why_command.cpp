// SPDX-License-Identifier: Apache-2.0
// tessera why RUN: which rank a hanging job waited for.
#include <fmt/chrono.h>

#include <ctime>
#include <filesystem>
#include <iostream>

#include "command.hpp"
#include "command_line.hpp"
#include "tessera/base/text_file.hpp"
#include "tessera/comm/call_trace.hpp"
#include "tessera/config/job_config.hpp"
#include "tessera/config/recorded.hpp"

namespace {

namespace fs = std::filesystem;
using tessera::comm::CallTrace;

/// comm.save_traces_folder as the run recorded it, or the user named that folder itself.
fs::path traces_folder(const fs::path& run) {
  const std::string toml = tessera::read_text(run / "config.toml").value_or("");
  const std::string name = tessera::config::recorded_text(toml, "comm.save_traces_folder");
  const fs::path folder = run / (name.empty() ? tessera::config::Comm().save_traces_folder : name);
  return !fs::exists(folder) && !fs::exists(run / "config.toml") ? run : folder;
}

int run(const tessera::app::Args& args) {
  std::string run_folder;
  tessera::app::Flags app(
      "Tells which rank a job waited for when it hung, and where, from the calls that its ranks "
      "left in "
      "comm.save_traces_folder.",
      "why");
  app.add_option("run", run_folder, "the run's folder (job.dump_folder), or its traces").required();
  if (!app.parse(args)) return 0;
  tessera::require(fs::is_directory(run_folder), tessera::ExitCode::usage,
                   "{} {}; name the run's folder (job.dump_folder)", run_folder,
                   fs::exists(run_folder) ? "is not a folder" : "does not exist");
  const fs::path folder = traces_folder(run_folder);
  const std::vector<CallTrace> traces = tessera::comm::traces_of_last_hang(folder);
  tessera::require(
      !traces.empty(), tessera::ExitCode::usage,
      "there are no traces in {}: the job did not hang, comm.trace_buf_size was 0, or the "
      "folder could not be written",
      folder.string());
  std::cout << fmt::format(
      "{} of {} ranks left their last calls in {}, the last at "
      "{:%Y-%m-%d %H:%M:%S} UTC\n",
      traces.size(), traces.front().ranks, folder.string(),
      fmt::gmtime(static_cast<std::time_t>(traces.front().unix_seconds)));
  const std::vector<std::string> lines = tessera::comm::who_holds_up(traces);
  for (const std::string& line : lines) std::cout << line << "\n";
  if (lines.empty()) std::cout << "no rank waits in a call\n";
  return 0;
}

const tessera::app::CommandRegistration registration{
    "why", "tell which rank a hanging job waited for", &run};

}  // namespace
