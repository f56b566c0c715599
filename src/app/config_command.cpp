// SPDX-License-Identifier: Apache-2.0
// tessera config check | show | keys: what a job is made of and whether it would run, with no
// ranks.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iostream>

#include "command.hpp"
#include "folder_job.hpp"
#include "tessera/base/log.hpp"
#include "tessera/base/suggest.hpp"
#include "tessera/config/document.hpp"
#include "tessera/config/resolve.hpp"
#include "tessera/inputs/job_check.hpp"

namespace {

using tessera::ExitCode;
using tessera::app::Args;
using tessera::inputs::JobCheck;
namespace config = tessera::config;

constexpr const char* kUsage =
    "Usage: tessera config check [FILE] [--ranks N] [--no-files] [--section.key VALUE]...\n"
    "       tessera config show [FILE] [--ranks N] [--no-files] [--section.key VALUE]...\n"
    "       tessera config keys [--json | --man | --markdown | --flags] [SECTION]\n"
    "\n"
    "FILE is a job file, the folder of a run or a Hugging Face folder.\n"
    "\n"
    "check  list the problems of the job. Memory, GPUs and the contents of checkpoints are not "
    "checked.\n"
    "       Of text, the first 64 KiB of each of the first 16 files are checked.\n"
    "show   print the resolved job as TOML, with the origin of each value, and check it.\n"
    "keys   list every key with its meaning, type, default and support.\n"
    "\n"
    "--ranks N    the number of ranks (default: the fewest that the mesh needs).\n"
    "--no-files   do not check the data, tokenizer and weights that the job names.\n"
    "\n"
    "Exit codes: 0 valid, 2 wrong configuration, 4 data or tokenizer missing, 5 weights missing.\n";

/// The words of check and show: their own flags, and the job's.
struct Request {
  int ranks = 0;
  JobCheck::Files files = JobCheck::Files::looked_at;
  Args job;
};

Request request_of(const Args& args) {
  constexpr std::string_view kRanks = "--ranks";
  Request request;
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (args[i] == "--no-files") {
      request.files = JobCheck::Files::ignored;
    } else if (args[i].starts_with("--ranks=")) {
      request.ranks = tessera::app::count_in("--ranks", args[i].substr(kRanks.size() + 1));
    } else if (args[i] == kRanks) {
      request.ranks = tessera::app::count_in("--ranks", i + 1 < args.size() ? args[++i] : "");
    } else {
      request.job.push_back(args[i]);
    }
  }
  std::error_code ignored;
  if (!request.job.empty() && std::filesystem::is_directory(request.job.front(), ignored)) {
    const Args named = tessera::app::job_of_folder(request.job.front());
    request.job.erase(request.job.begin());
    request.job.insert(request.job.begin(), named.begin(), named.end());
  }
  return request;
}

config::Reading read_and_check(const Request& request) {
  config::Reading job = config::read_job(request.job);
  JobCheck(request.files).find_problems(job, request.ranks);
  for (const std::string& choice : job.resolved.choices) tessera::log::info("{}", choice);
  for (const std::string& warning : job.resolved.warnings) tessera::log::warning("{}", warning);
  return job;
}

int check(const Args& args) {
  const Request request = request_of(args);
  const config::Reading job = read_and_check(request);
  config::throw_if_wrong(job.problems);
  std::cout << "no problems found\n";
  return 0;
}

/// A job that reads well is shown even where it cannot be run: its values and origins help to
/// correct it.
int show(const Args& args) {
  const config::Reading job = read_and_check(request_of(args));
  const bool readable = std::ranges::none_of(job.problems, &config::Problem::misread) && job.whole;
  if (readable) std::cout << job.resolved.to_toml();
  config::throw_if_wrong(job.problems);
  return 0;
}

int keys(const Args& args) {
  const std::string how = args.empty() ? "" : args.front();
  if (args.size() > 1)
    tessera::fail(ExitCode::usage, "config keys takes one argument, not {}", args.size());
  if (how == "--json")
    std::cout << config::keys_as_json();
  else if (how == "--man")
    std::cout << config::keys_as_man_page();
  else if (how == "--markdown")
    std::cout << config::keys_as_markdown();
  else if (how == "--flags")
    std::cout << config::flags_as_words();
  else if (how.starts_with('-'))
    tessera::fail(ExitCode::usage,
                  "unknown flag {}; config keys takes --json, --man, --markdown or --flags", how);
  else
    std::cout << config::keys_as_table(how);
  return 0;
}

int run(const Args& args) {
  const std::string what = args.empty() ? "" : args.front();
  const Args rest(args.begin() + (args.empty() ? 0 : 1), args.end());
  if (tessera::app::asks_for_help(args)) {
    std::cout << kUsage;
    return 0;
  }
  if (what == "check") return check(rest);
  if (what == "show") return show(rest);
  if (what == "keys") return keys(rest);
  tessera::fail(ExitCode::usage, "config {} is not known; use check, show or keys{}",
                what.empty() ? "(nothing)" : what,
                tessera::did_you_mean(what, {"check", "show", "keys"}));
}

const tessera::app::CommandRegistration registration{
    "config", "check or print a resolved job; list all keys", &run};

}  // namespace
