// SPDX-License-Identifier: Apache-2.0
#include "command_line.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <functional>
#include <iostream>
#include <limits>
#include <optional>
#include <vector>

#include "help_text.hpp"
#include "tessera/base/suggest.hpp"
#include "tessera/config/option_table.hpp"

namespace tessera::app {

namespace {

/// The subcommand whose words were parsed last; the command itself where there is none.
const CLI::App& deepest(const CLI::App& app) {
  const auto named = app.get_subcommands();
  return named.empty() ? app : deepest(*named.back());
}

std::vector<std::string> flags_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

std::vector<std::string> subcommands_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  return names;
}

/// "tessera ckpt export": what the user typed to come here.
std::string typed(const CLI::App& app) {
  return app.get_parent() ? typed(*app.get_parent()) + " " + app.get_name() : app.get_name();
}

[[noreturn]] void refuse_unknown(const CLI::App& app, const std::string& word) {
  const bool flag = word.starts_with("-");
  const std::string name = word.substr(0, word.find('='));
  const std::vector<std::string> known = flag ? flags_of(app) : subcommands_of(app);
  const std::string hint = did_you_mean(name, known);
  if (!flag && known.empty())
    fail(ExitCode::usage, "`{}` takes no further argument '{}'; `{} --help` shows its use",
         typed(app), word, typed(app));
  fail(ExitCode::usage, "`{}` has no {} '{}'{}", typed(app), flag ? "flag" : "command", name,
       !hint.empty() ? hint : fmt::format("; `{} --help` lists them", typed(app)));
}

[[noreturn]] void refuse(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& at = deepest(app);
  const std::vector<std::string> unknown = app.remaining(true);
  if (!unknown.empty()) refuse_unknown(at, unknown.front());
  if (const auto commands = subcommands_of(at);
      !commands.empty() && at.get_require_subcommand_min() > 0)
    fail(ExitCode::usage, "`{}` needs a command: {}", typed(at), fmt::join(commands, ", "));
  fail(ExitCode::usage, "{}; `{} --help` shows its use", error.what(), typed(at));
}

/// CLI11 reads 010 as 8, and takes the nearest value for a number that does not fit.
template <class T>
std::string read_as_decimal(std::string& text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc{} && end == text.data() + text.size()) {
    text = std::to_string(value);
    return {};
  }
  return fmt::format("must be a whole number of {} to {}, not '{}'", std::numeric_limits<T>::min(),
                     std::numeric_limits<T>::max(), text);
}

bool has_empty_item(const std::string& list, char separator) {
  return list.empty() || list.front() == separator || list.back() == separator ||
         list.find(std::string(2, separator)) != std::string::npos;
}

/// CLI11 drops the empty items of a list, in each word of it. `args`: in the order of the command
/// line.
void refuse_empty_items(const CLI::App& app, const Args& args) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_delimiter() == '\0') continue;
    for (std::size_t i = 0; i < args.size(); ++i) {
      const std::string name = args[i].substr(0, args[i].find('='));
      if (!option->check_name(name)) continue;
      const auto check = [&](const std::string& list) {
        require(!has_empty_item(list, option->get_delimiter()), ExitCode::usage,
                "{}: '{}' has an empty item", name, list);
      };
      if (name.size() < args[i].size()) check(args[i].substr(name.size() + 1));
      for (std::size_t k = i + 1; k < args.size() && !args[k].starts_with("--"); ++k)
        check(args[k]);
    }
  }
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    refuse_empty_items(*command, args);
}

template <class T>
struct ValueOf {
  using Type = T;
};
template <class T>
struct ValueOf<std::vector<T>> : ValueOf<T> {};
template <class T>
struct ValueOf<std::optional<T>> : ValueOf<T> {};

/// Refuses values for which `holds` is false: "--ranks: must be 1 to 4096, not 0".
void check(CLI::Option& option, std::function<bool(double)> holds, std::string rule) {
  const auto wrong = [holds = std::move(holds), rule = std::move(rule)](std::string& text) {
    double value = 0;
    const bool right =
        CLI::detail::lexical_cast(text, value) && std::isfinite(value) && holds(value);
    return right ? std::string() : fmt::format("must be {}, not {}", rule, text);
  };
  option.transform(CLI::Validator(wrong, ""));  // the first check of all
}

}  // namespace

Flag Flag::required() {
  option_->required();
  return *this;
}
Flag Flag::at_least(double least) {
  check(
      *option_, [=](double value) { return value >= least; }, fmt::format("at least {}", least));
  return *this;
}
Flag Flag::between(double least, double most) {
  check(
      *option_, [=](double value) { return value >= least && value <= most; },
      fmt::format("{} to {}", least, most));
  return *this;
}
Flag Flag::positive() {
  check(
      *option_, [](double value) { return value > 0; }, "greater than 0");
  return *this;
}
Flag Flag::delimiter(char separator) {
  option_->delimiter(separator);
  return *this;
}
Flag Flag::excludes(const Flag& other) {
  option_->excludes(other.option_);
  return *this;
}
Flag Flag::needs(const Flag& other) {
  option_->needs(other.option_);
  return *this;
}
Flag Flag::show_default() {
  option_->capture_default_str();
  return *this;
}
bool Flag::given() const { return option_->count() > 0; }

Flags::Flags(const std::string& summary, const std::string& command)
    : app_(std::make_shared<CLI::App>(summary, "tessera " + command)) {}

template <class T>
Flag Flags::add_option(const std::string& names, T& value, const std::string& help) {
  CLI::Option* option = app_->add_option(names, value, help);
  using Value = typename ValueOf<T>::Type;
  if constexpr (std::integral<Value>)
    option->transform(CLI::Validator(&read_as_decimal<Value>, ""));
  if constexpr (std::same_as<T, std::string>)
    option->check([](const std::string& text) {
      return text.empty() ? std::string("must not be empty") : std::string();
    });
  return Flag(option);
}
template Flag Flags::add_option(const std::string&, std::string&, const std::string&);
template Flag Flags::add_option(const std::string&, int&, const std::string&);
template Flag Flags::add_option(const std::string&, std::int64_t&, const std::string&);
template Flag Flags::add_option(const std::string&, std::uint64_t&, const std::string&);
template Flag Flags::add_option(const std::string&, double&, const std::string&);
template Flag Flags::add_option(const std::string&, std::optional<std::string>&,
                                const std::string&);
template Flag Flags::add_option(const std::string&, std::optional<int>&, const std::string&);
template Flag Flags::add_option(const std::string&, std::vector<std::string>&, const std::string&);
template Flag Flags::add_option(const std::string&, std::vector<std::int32_t>&, const std::string&);
template Flag Flags::add_option(const std::string&, std::vector<std::int64_t>&, const std::string&);

Flag Flags::add_flag(const std::string& names, bool& value, const std::string& help) {
  return Flag(app_->add_flag(names, value, help));
}

Flags Flags::add_subcommand(const std::string& name, const std::string& summary) {
  return Flags(app_->get_subcommand_ptr(app_->add_subcommand(name, summary)));
}
void Flags::require_subcommand() { app_->require_subcommand(1); }
bool Flags::parsed() const { return app_->parsed(); }

bool Flags::parse(Args args) {
  refuse_empty_items(*app_, args);
  std::ranges::reverse(args);  // CLI11 takes them last first
  try {
    app_->parse(args);
    return true;
  } catch (const CLI::CallForHelp&) {
    std::cout << help_text(
        deepest(*app_).help(deepest(*app_).get_parent() ? app_->get_name() : ""));
    return false;
  } catch (const CLI::CallForAllHelp&) {
    std::cout << help_text(app_->help("", CLI::AppFormatMode::All));
    return false;
  } catch (const CLI::ParseError& error) {
    refuse(*app_, error);
  }
}

SplitArgs split_job_flags(const Args& args, const Args& keep) {
  SplitArgs split;
  for (std::size_t i = 0; i < args.size(); ++i) {
    const std::string name = args[i].substr(0, args[i].find('='));
    const bool short_flag =
        config::find_short_flag(name) && std::ranges::find(keep, name) == keep.end();
    const bool job_flag =
        name.starts_with("--") && (short_flag || name.find('.') != std::string::npos);
    (job_flag ? split.job : split.own).push_back(args[i]);
    const bool value_follows = job_flag && args[i].find('=') == std::string::npos &&
                               i + 1 < args.size() && !args[i + 1].starts_with("--");
    if (value_follows) split.job.push_back(args[++i]);
  }
  return split;
}

}  // namespace tessera::app
