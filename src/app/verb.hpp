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
