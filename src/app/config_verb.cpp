// tessera config show | keys: what a job is made of, with no ranks.
#include <fmt/format.h>

#include <iostream>

#include "tessera/base/log.hpp"
#include "tessera/config/document.hpp"
#include "tessera/config/resolve.hpp"
#include "tessera/config/suggest.hpp"
#include "verb.hpp"

namespace {

using tessera::ExitCode;
using tessera::app::Args;
namespace config = tessera::config;

constexpr const char* kUsage =
    "Usage: tessera config show [FILE.toml] [--section.key VALUE]...\n"
    "       tessera config keys [--json | --man | --flags] [SECTION]\n"
    "\n"
    "show  print the resolved job as TOML; comments give the origin of each value\n"
    "keys  list every key with its meaning, type, default and support\n";

int show(const Args& args) {
  const config::Resolved resolved = config::resolve(args);
  for (const std::string& warning : resolved.warnings) tessera::log::warning("{}", warning);
  std::cout << resolved.to_toml();
  return 0;
}

int keys(const Args& args) {
  const std::string how = args.empty() ? "" : args.front();
  if (args.size() > 1) tessera::fail(ExitCode::usage, "config keys takes one argument, not {}", args.size());
  if (how == "--json")
    std::cout << config::keys_as_json();
  else if (how == "--man")
    std::cout << config::keys_as_man_page();
  else if (how == "--flags")
    std::cout << config::flags_as_words();
  else if (how.starts_with('-'))
    tessera::fail(ExitCode::usage, "unknown flag {}; config keys takes --json, --man or --flags", how);
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
  if (what == "show") return show(rest);
  if (what == "keys") return keys(rest);
  tessera::fail(ExitCode::usage, "config {} is not known; use show or keys{}", what.empty() ? "(nothing)" : what,
                config::did_you_mean(what, {"show", "keys"}));
}

const tessera::app::VerbRegistration registration{"config", "print a resolved job; list all keys", &run};

}  // namespace
