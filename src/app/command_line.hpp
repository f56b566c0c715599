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

}  // namespace tessera::app
