// SPDX-License-Identifier: Apache-2.0
#include "command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <iostream>

#include "tessera/base/file_trouble.hpp"
#include "tessera/base/out_of_memory.hpp"
#include "tessera/base/suggest.hpp"

namespace tessera::app {

namespace {

/// Function-local, because registrations run before main in an order that no one knows.
std::vector<Command>& registry() {
  static std::vector<Command> commands;
  return commands;
}

std::vector<RuntimeFact>& facts() {
  static std::vector<RuntimeFact> facts;
  return facts;
}

void print_usage(std::ostream& out) {
  out << "Usage: tessera COMMAND [ARGUMENT]...\n       tessera COMMAND --help\n       tessera "
         "--version "
         "[--json]\n\nCommands:\n";
  for (const Command& command : commands())
    out << fmt::format("  {:<11} {}\n", command.name, command.summary);
  out << "\n" << kExitCodes;
}

int help(const Args& args) {
  if (!args.empty()) {
    Args words(args.begin() + 1, args.end());
    words.emplace_back("--help");
    return find_command(args.front()).run(words);
  }
  print_usage(std::cout);
  return 0;
}

int dispatch(const Args& args) {
  if (args.empty()) {
    print_usage(std::cerr);
    return static_cast<int>(ExitCode::usage);
  }
  const Args rest(args.begin() + 1, args.end());
  const std::string& word = args.front();
  if (word == "--help" || word == "-h" || word == "help")
    return help(word == "help" ? rest : Args{});
  if (word == "--version" || word == "-V") return find_command("version").run(rest);
  return find_command(word).run(rest);
}

/// Messages quote the contents of files: a terminal gets none of its control characters, and no
/// more than some pages.
std::string printable(std::string text) {
  constexpr std::size_t kMostBytes = 32 << 10;
  if (text.size() > kMostBytes) text.replace(kMostBytes, text.npos, "...");
  const auto control = [](unsigned char c) {
    return (c < 0x20 && c != '\n' && c != '\t') || c == 0x7f;
  };
  std::ranges::replace_if(text, control, '?');
  return text;
}

int report(const std::string& message, ExitCode code) {
  std::fprintf(stderr, "tessera: %s\n", printable(message).c_str());
  return static_cast<int>(code);
}

/// The shell's code for an abort, which is what a bug is.
int report_bug(const std::string& what) {
  std::fprintf(stderr, "tessera: this is a bug in Tessera, please report it: %s\n", what.c_str());
  return 134;
}

}  // namespace

CommandRegistration::CommandRegistration(const char* name, const char* summary,
                                         int (*run)(const Args&)) {
  auto& all = registry();
  const auto behind = [&](const Command& command) { return std::string_view(command.name) > name; };
  all.insert(std::ranges::find_if(all, behind), Command{name, summary, run});
}

RuntimeFactRegistration::RuntimeFactRegistration(const char* name, std::string (*value)()) {
  facts().push_back({name, value});
}

const std::vector<Command>& commands() { return registry(); }

const Command& find_command(const std::string& name) {
  std::vector<std::string> names;
  for (const Command& command : commands()) {
    if (name == command.name) return command;
    names.emplace_back(command.name);
  }
  const std::string hint = did_you_mean(name, names);
  fail(ExitCode::usage, "'{}' is not a command of tessera{}", name.substr(0, 60),
       hint.empty() ? "; `tessera --help` lists them" : hint);
}

int count_in(const std::string& flag, const std::string& value) {
  int count = 0;
  const auto [end, problem] = std::from_chars(value.data(), value.data() + value.size(), count);
  require(problem == std::errc{} && end == value.data() + value.size() && count >= 1,
          ExitCode::usage, "{} must be a whole number from 1, not '{}'", flag, value.substr(0, 60));
  return count;
}

bool asks_for_help(const Args& args) {
  return std::ranges::any_of(args,
                             [](const std::string& arg) { return arg == "--help" || arg == "-h"; });
}

const std::vector<RuntimeFact>& runtime_facts() { return facts(); }

int run(const Args& args) {
  try {
    return dispatch(args);
  } catch (const Error& error) {
    return report(error.what(), error.code());
  } catch (const std::filesystem::filesystem_error& error) {
    return report(fmt::format("'{}': {}; check the path and its permissions",
                              error.path1().string(), error.code().message()),
                  ExitCode::environment);
  } catch (const std::exception& error) {
    if (const std::string file = file_trouble(error); !file.empty())
      return report(file, ExitCode::environment);
    if (const std::string memory = out_of_memory(error); !memory.empty())
      return report(memory + "; use a smaller job or more memory", ExitCode::environment);
    return report_bug(error.what());
  } catch (...) {
    return report_bug("an exception of unknown type");
  }
}

}  // namespace tessera::app
