// SPDX-License-Identifier: Apache-2.0
// The commands of `tessera`. Each is one file NAME_command.cpp that registers itself; the build
// finds it by its name.
#pragma once

#include <string>
#include <vector>

#include "tessera/base/error.hpp"

namespace tessera::app {

using Args = std::vector<std::string>;

struct Command {
  const char* name;
  const char* summary;  ///< one line for `tessera --help`
  /// Takes the words after the command; {"--help"} must print its usage. Returns the exit code.
  int (*run)(const Args& args);
};

/// Defined as a constant in a command's file. Throwing Error ends the program with its message and
/// code.
struct CommandRegistration {
  CommandRegistration(const char* name, const char* summary, int (*run)(const Args&));
};

/// Every registered command, by name.
const std::vector<Command>& commands();
/// Throws Error(usage) with the nearest name for one that is not registered.
const Command& find_command(const std::string& name);

/// The value of a flag of its own. Throws Error(usage) that names `flag` for all but a whole number
/// from 1.
int count_in(const std::string& flag, const std::string& value);

/// Whether the user asks for help, wherever the flag is.
bool asks_for_help(const Args& args);

/// For --help: the exit codes, in lines.
inline constexpr const char* kExitCodes =
    "Exit codes:\n"
    "  0  success\n"
    "  2  wrong usage or configuration\n"
    "  3  environment: MPI, GPU, libraries, permissions, memory, a folder in use\n"
    "  4  data or tokenizer\n"
    "  5  a checkpoint is damaged or missing, or cannot be written\n"
    "  6  stopped on non-finite values\n"
    "  7  communication failed or hung\n"
    "  75 stopped and saved: run the same command again to resume\n";

/// What a component knows of its libraries at run time, for `tessera --version`: {"MPI",
/// &library_version}.
struct RuntimeFact {
  const char* name;
  std::string (*value)();
};
struct RuntimeFactRegistration {
  RuntimeFactRegistration(const char* name, std::string (*value)());
};
const std::vector<RuntimeFact>& runtime_facts();

/// Runs the command that args name (`--help`, `--version` and `help COMMAND` too) and returns the
/// process's exit code. Every exception ends here, as one message on standard error.
int run(const Args& args);

}  // namespace tessera::app
