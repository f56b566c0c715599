// CLI11 for verbs: --help prints and ends well, a bad flag is the user's error.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>

#include "verb.hpp"

namespace tessera::app {

/// Parses the words after the verb. False when the user asked for help, which was printed: return 0 then.
/// Throws Error(usage) for anything that CLI11 refuses.
inline bool parse(CLI::App& app, Args args) {
  std::ranges::reverse(args);  // CLI11 takes them last first
  try {
    app.parse(args);
    return true;
  } catch (const CLI::CallForHelp&) {
    std::cout << app.help();
    return false;
  } catch (const CLI::CallForAllHelp&) {
    std::cout << app.help("", CLI::AppFormatMode::All);
    return false;
  } catch (const CLI::ParseError& error) {
    fail(ExitCode::usage, "{}; `tessera help {}` shows its use", error.what(), app.get_name());
  }
}

/// Words of a verb that also takes a job's flags: `--section.key [value]` apart from the verb's own.
struct SplitArgs {
  Args own, job;
};
inline SplitArgs split_job_flags(const Args& args) {
  SplitArgs split;
  for (std::size_t i = 0; i < args.size(); ++i) {
    const bool job_flag = args[i].starts_with("--") && args[i].find('.') < args[i].find('=');
    (job_flag ? split.job : split.own).push_back(args[i]);
    const bool value_follows = job_flag && args[i].find('=') == std::string::npos && i + 1 < args.size() && !args[i + 1].starts_with("--");
    if (value_follows) split.job.push_back(args[++i]);
  }
  return split;
}

}  // namespace tessera::app
