// SPDX-License-Identifier: Apache-2.0
// tessera sweep: many runs of one job with other settings.
#include "command_line.hpp"
#include "sweep_actions.hpp"

namespace tessera::app {
namespace {

void add_no_files(Flags& command, SweepRequest& request) {
  command.add_flag("--no-files", request.no_files,
                   "do not check the data, tokenizer and weights that the points name");
}

/// A subcommand that starts points.
Flags add_starting(Flags& flags, SweepRequest& request, const char* name, const char* summary,
                   const char* file) {
  Flags command = flags.add_subcommand(name, summary);
  command.add_option("file", request.file, file).required();
  command
      .add_option("-n,--at-once", request.at_once,
                  "points that run at the same time [at_once of the file; else as many as the "
                  "cores allow, or on "
                  "Slurm all]")
      .between(1, 10000);
  command.add_option("--on", request.on, "local: this machine; slurm: one array job");
  command.add_flag("--dry-run", request.dry_run, "print what would be started, and start nothing");
  add_no_files(command, request);
  return command;
}

int run(const Args& args) {
  constexpr const char *kFile = "the sweep (TOML)", *kFolder = "the sweep (TOML), or its folder";
  SweepRequest request;
  Flags flags("Runs one job with many settings.", "sweep");
  flags.require_subcommand();
  Flags expand =
      flags.add_subcommand("expand", "check a sweep file and print its points; starts nothing");
  expand.add_option("file", request.file, kFile).required();
  expand.add_flag(
      "--lines", request.lines,
      "print only the flags of each point, one point a line; other output goes to standard error");
  add_no_files(expand, request);
  Flags here = add_starting(flags, request, "run",
                            "start every point that is not done, on this machine", kFolder);
  Flags array = add_starting(flags, request, "submit",
                             "submit every point that is not done to Slurm, as one array", kFolder);
  Flags again = add_starting(
      flags, request, "rerun-failed",
      "start failed points again, on Slurm if the sweep was submitted before", kFolder);
  Flags status = flags.add_subcommand(
      "status", "print the state of each point; exit code 0 if all are done, else 1");
  status.add_option("file", request.file, kFolder).required();
  Flags results = flags.add_subcommand("collect", "write the results as CSV, JSON and a page");
  results.add_option("file", request.file, kFolder).required();
  results.add_option("--by", request.by,
                     "compare points by this column of metrics.jsonl [validation/loss, else loss]");
  results.add_option("--heat", request.heat, "two keys for the heat map [the first two that vary]")
      .delimiter(',');
  if (!flags.parse(args)) return 0;
  if (expand.parsed()) return expand_sweep(request);
  if (status.parsed()) return show_sweep(request);
  if (results.parsed()) return collect_sweep(request);
  request.only_failed = again.parsed();
  if (request.on.empty() && !again.parsed()) request.on = array.parsed() ? "slurm" : "local";
  return start_sweep(request);
}

const CommandRegistration registration{"sweep",
                                       "run one job with many settings; collect the results", &run};

}  // namespace
}  // namespace tessera::app
