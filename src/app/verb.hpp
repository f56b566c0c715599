// The verbs of `tessera`: each is one file NAME_verb.cpp that registers itself; the build picks it up by its name.
#pragma once

#include <string>
#include <vector>

#include "tessera/base/error.hpp"

namespace tessera::app {

using Args = std::vector<std::string>;

struct Verb {
  const char* name;
  const char* summary;  ///< one line for `tessera --help`
  int (*run)(
      const Args& args);  ///< takes the words after the verb; {"--help"} must print its usage. Returns the exit code.
};

/// Defined as a constant in a verb's file. Throwing Error ends the program with its message and code.
struct VerbRegistration {
  VerbRegistration(const char* name, const char* summary, int (*run)(const Args&));
};

/// Every registered verb, by name.
const std::vector<Verb>& verbs();
/// Throws Error(usage) with the nearest name for one that is not registered.
const Verb& find_verb(const std::string& name);

/// Whether the user asks for help, wherever the flag stands.
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

/// What a room knows of its libraries at run time, for `tessera --version`: {"MPI", &library_version}.
struct RuntimeFact {
  const char* name;
  std::string (*value)();
};
struct RuntimeFactRegistration {
  RuntimeFactRegistration(const char* name, std::string (*value)());
};
const std::vector<RuntimeFact>& runtime_facts();

/// Runs the verb that args name (`--help`, `--version` and `help VERB` too) and returns the process's exit code. Every
/// exception ends here, as one message on standard error.
int run(const Args& args);

}  // namespace tessera::app
