// SPDX-License-Identifier: Apache-2.0
// The flags of a command. CLI11 parses them; its header costs 10 s of compile time, so that only
// command_line.cpp sees it.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "command.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tessera::app {

/// One flag or positional argument of a command: a handle, valid as long as the command's Flags.
class Flag {
 public:
  Flag required();
  Flag at_least(double least);
  Flag between(double least, double most);
  Flag positive();
  /// A list whose values may be in one word, separated by `separator`.
  Flag delimiter(char separator);
  Flag excludes(const Flag& other);
  Flag needs(const Flag& other);
  /// --help shows the value that the variable has now.
  Flag show_default();
  /// Whether the user gave it.
  bool given() const;

 private:
  friend class Flags;
  explicit Flag(CLI::Option* option) : option_(option) {}
  CLI::Option* option_;
};

/// The flags of one command, or of one of its subcommands. Variables take their values in parse(),
/// and must outlive it.
class Flags {
 public:
  /// `command` is what the user types after "tessera".
  Flags(const std::string& summary, const std::string& command);

  /// A value: `names` is "-o,--output", or "file" for a positional argument. T: std::string, bool,
  /// int, std::int64_t, std::uint64_t, double, vectors and optionals of some of them;
  /// command_line.cpp lists them.
  template <class T>
  Flag add_option(const std::string& names, T& value, const std::string& help);
  /// A switch that takes no value.
  Flag add_flag(const std::string& names, bool& value, const std::string& help);

  Flags add_subcommand(const std::string& name, const std::string& summary);
  /// Refuses a command line that names no subcommand.
  void require_subcommand();
  /// Whether the user named this subcommand.
  bool parsed() const;

  /// Parses the words after the command. False when the user asked for help, which was printed:
  /// return 0 then. Throws Error(usage) for words that do not fit, with the nearest that would.
  bool parse(Args args);

 private:
  explicit Flags(std::shared_ptr<CLI::App> app) : app_(std::move(app)) {}
  std::shared_ptr<CLI::App> app_;
};

/// Words of a command that also takes a job's flags: `--section.key [value]` and the job's short
/// flags (--data) apart from the command's own. `keep`: short flags that are the command's own.
struct SplitArgs {
  Args own, job;
};
SplitArgs split_job_flags(const Args& args, const Args& keep = {});

}  // namespace tessera::app
