// SPDX-License-Identifier: Apache-2.0
// tessera launch [-n N] [options of mpirun] -- COMMAND ...: what srun does, on one machine or under
// mpirun.
//
// Plain mpirun gives its ranks about one second after Ctrl-C and then returns 1 whatever they
// return. Here mpirun runs in a session of its own, where the terminal's signals do not reach it,
// and gets the one that it forwards: SIGUSR1.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <optional>

#include "command.hpp"
#include "launched_job.hpp"
#include "node_cores.hpp"
#include "tessera/base/log.hpp"
#include "this_program.hpp"

namespace tessera::app {
namespace {

constexpr const char* kUsage =
    "Usage: tessera launch [-n N] [option of mpirun]... -- COMMAND [ARGUMENT]...\n\n"
    "Starts N ranks of this program under mpirun, e.g. `tessera launch -n 8 -- train job.toml`.\n"
    "Without -n, mpirun starts one rank on each core.\n"
    "After the first Ctrl-C or SIGTERM, launch sends SIGUSR1 to the ranks. They save a checkpoint\n"
    "if checkpoint.enable is true, and end.\n"
    "A second one ends them at once. The exit code is that of the ranks.\n"
    "If OMP_NUM_THREADS is not set, launch sets it to the number of hardware threads / N, or to 1\n"
    "without -n. Under Slurm, use srun instead.\n";

struct Request {
  Args options;  ///< mpirun's
  Args words;    ///< the command and its arguments
  std::optional<int> ranks;
};

bool any_of(const Args& options, std::initializer_list<std::string_view> names) {
  return std::ranges::any_of(
      options, [&](const std::string& o) { return std::ranges::find(names, o) != names.end(); });
}

int rank_count(const std::string& text) {
  char* end = nullptr;
  const long value = std::strtol(text.c_str(), &end, 10);
  require(!text.empty() && *end == '\0' && value >= 1 && value <= 1'000'000, ExitCode::usage,
          "launch -n {}: not a number of ranks; give one from 1 up", text.substr(0, 40));
  return static_cast<int>(value);
}

Request parse(const Args& args) {
  const auto dashes = std::ranges::find(args, "--");
  require(dashes != args.end() && dashes + 1 != args.end(), ExitCode::usage,
          "launch needs a command after --, such as `tessera launch -n 8 -- train job.toml`");
  Request request{{args.begin(), dashes}, {dashes + 1, args.end()}, {}};
  require(std::filesystem::path(request.words.front()).filename() != "tessera", ExitCode::usage,
          "launch starts tessera itself; omit the word tessera: `tessera launch {}{}-- {}...`",
          fmt::join(request.options, " "), request.options.empty() ? "" : " ",
          request.words.size() > 1 ? request.words[1] + " " : "");
  for (std::size_t i = 0; i < request.options.size(); ++i) {
    const std::string& option = request.options[i];
    if (option != "-n" && option != "-np" && option != "--np" && option != "--n" && option != "-c")
      continue;
    require(i + 1 < request.options.size(), ExitCode::usage, "launch {} lacks the number of ranks",
            option);
    request.ranks = rank_count(request.options[i + 1]);
  }
  return request;
}

/// Threads of each rank: what the user set, else an equal share of the cores.
int threads_per_rank(const Cores& cores, std::optional<int> ranks) {
  const char* set = std::getenv("OMP_NUM_THREADS");
  if (set && *set) return std::max(1, std::atoi(set));
  return ranks ? std::max(1, cores.threads / *ranks) : 1;
}

/// mpirun's command line. On other machines (hosts, Slurm) the counting of cores is left to mpirun.
JobPlan plan(const Request& request) {
  const Cores cores = usable_cores();
  const bool elsewhere = std::getenv("SLURM_JOB_ID") ||
                         any_of(request.options, {"-H", "-host", "--host", "-hostfile",
                                                  "--hostfile", "-machinefile", "--machinefile"});
  const bool crowded = !elsewhere && request.ranks.value_or(1) > cores.physical;
  constexpr int kCrowd = 4;  // ranks on a hardware thread
  if (crowded && *request.ranks > kCrowd * cores.threads)
    log::warning("{} ranks share {} cores: steps will be slow; `-n {}` gives each rank a core",
                 *request.ranks, cores.physical, cores.physical);
  const int threads = elsewhere ? 1 : threads_per_rank(cores, request.ranks);
  JobPlan job;
  job.command = {"mpirun", "--quiet"};
  if (crowded && !any_of(request.options, {"--oversubscribe", "-oversubscribe"}))
    job.command.push_back("--oversubscribe");
  const bool bound = any_of(request.options, {"--bind-to", "-bind-to"});
  if (!bound && (crowded || threads > 1))
    job.command.insert(job.command.end(), {"--bind-to", "none"});
  if (!std::getenv("OMP_NUM_THREADS") && !elsewhere)
    job.environment.emplace_back("OMP_NUM_THREADS", std::to_string(threads));
  // mpirun gives rank 0 a terminal of its own; ours decides whether a bar may be drawn.
  if (isatty(STDOUT_FILENO)) job.environment.emplace_back("TESSERA_SCREEN", "1");
  if (geteuid() == 0)
    for (const char* name : {"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"})
      job.environment.emplace_back(name, "1");
  if (std::getenv("OMP_NUM_THREADS") || !elsewhere)
    job.command.insert(job.command.end(), {"-x", "OMP_NUM_THREADS"});
  job.command.insert(job.command.end(), request.options.begin(), request.options.end());
  job.command.push_back(this_program());
  job.command.insert(job.command.end(), request.words.begin(), request.words.end());
  job.local = !elsewhere;
  return job;
}

int run(const Args& args) {
  const auto dashes = std::ranges::find(args, "--");
  if (asks_for_help({args.begin(), dashes})) {
    std::cout << kUsage << "\n" << kExitCodes;
    return 0;
  }
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "PMIX_RANK"})
    require(!std::getenv(name), ExitCode::usage,
            "`tessera launch` is already running under mpirun or srun ({} is set); use only one of "
            "the two",
            name);
  const Request request = parse(args);
  // Said once here, and not by each rank.
  const Command& command = find_command(request.words.front());
  if (const Args words(request.words.begin() + 1, request.words.end()); asks_for_help(words))
    return command.run(words);
  return run_job(plan(request));
}

const CommandRegistration registration{
    "launch", "start ranks on this machine: launch -n 8 -- train ...", &run};

}  // namespace
}  // namespace tessera::app
