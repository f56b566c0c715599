// SPDX-License-Identifier: Apache-2.0
// Errors of three kinds: the user's, a broken contract, a foreign call's. Libraries throw; only
// main() prints and exits.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace tessera {

/// Process exit codes; share/doc/tessera and `man tessera` list them, scripts rely on them.
enum class ExitCode : int {
  done = 0,
  usage = 2,          ///< wrong use or configuration
  environment = 3,    ///< MPI, GPU, libraries, permissions
  data = 4,           ///< data or tokenizer
  checkpoint = 5,     ///< checkpoint damaged or not there
  nonfinite = 6,      ///< stopped on non-finite numbers
  communication = 7,  ///< communication failed or hung
  requeue = 75,       ///< checkpointed, requeue me (EX_TEMPFAIL)
  interrupted = 130,  ///< SIGINT before anything could be saved
  terminated = 143,   ///< SIGTERM before anything could be saved
};

/// Base of every exception that Tessera throws on purpose: a message for people and the code the
/// program ends with. Messages follow one grammar: "what is wrong (where or why); what to do".
class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ExitCode code() const noexcept { return code_; }

 private:
  ExitCode code_;
};

/// Throws Error(code) with a fmt-formatted message.
template <class... Args>
[[noreturn]] void fail(ExitCode code, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(code, fmt::format(format, std::forward<Args>(args)...));
}

/// Checked always: throws Error(code) with a fmt-formatted message unless `condition` holds.
template <class... Args>
void require(bool condition, ExitCode code, fmt::format_string<Args...> format, Args&&... args) {
  if (!condition) [[unlikely]]
    fail(code, format, std::forward<Args>(args)...);
}

/// A contract between parts of Tessera was broken: a bug. Carries file and line.
class ContractViolation : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] void contract_violated(const char* expression, const char* file, int line,
                                    const std::string& why);

}  // namespace tessera

/// Checked in every build (they are on cold paths only): the caller kept the contract that the
/// header states.
#define TESSERA_EXPECT(condition, ...)                                                          \
  do {                                                                                          \
    if (!(condition)) [[unlikely]]                                                              \
      ::tessera::contract_violated(#condition, __FILE__, __LINE__, ::fmt::format(__VA_ARGS__)); \
  } while (0)
