// SPDX-License-Identifier: Apache-2.0
#include "tessera/config/document.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tessera/base/error.hpp"
#include "tessera/base/json.hpp"
#include "tessera/base/suggest.hpp"
#include "tessera/config/option_table.hpp"

namespace tessera::config {

namespace {

bool in_section(const Option& option, std::string_view section) {
  return section.empty() ||
         (option.key.starts_with(section) && option.key.substr(section.size()).starts_with('.'));
}

/// "yes", "only 1F1B, GPipe (refused otherwise: ...)", "refused: ...", "harmless: ...".
std::string support_text(const Option& option) {
  if (option.support == Support::acts) return "yes";
  if (option.support == Support::harmless) return fmt::format("no effect: {}", option.why);
  if (option.why.empty()) return fmt::format("refused with {}", option.under);
  if (option.working.empty()) return fmt::format("refused: {}", option.why);
  return fmt::format("only {}: {}", fmt::join(option.working, ", "), option.why);
}

std::string type_text(const Option& option) {
  const std::string base = option.allowed.empty()
                               ? std::string(type_name(option))
                               : fmt::format("{}", fmt::join(option.allowed, " | "));
  const std::string words = option.true_word.empty() ? base : base + " | true | false";
  return is_optional(option) ? words + " | none" : words;
}

std::string default_text(const Option& option) { return to_toml(default_of(option)); }

void require_section(std::string_view section) {
  if (section.empty() || is_section(section)) return;
  Strings names;
  for (const Option& option : options()) names.emplace_back(section_of(option.key));
  fail(ExitCode::usage, "no section is called '{}'{}", section.substr(0, 60),
       did_you_mean(section, names));
}

/// Roff takes a leading dot or quote, and backslashes, for its own.
std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
  }
  return out.starts_with('.') || out.starts_with('\'') ? "\\&" + out : out;
}

nlohmann::ordered_json as_json(const Option& option) {
  using Json = nlohmann::ordered_json;
  const auto words = [](const std::vector<std::string_view>& list) {
    return Json(Strings(list.begin(), list.end()));
  };
  const char* support = option.support == Support::acts      ? "acts"
                        : option.support == Support::refused ? "refused"
                                                             : "harmless";
  return {{"key", std::string(option.key)},      {"type", std::string(type_name(option))},
          {"optional", is_optional(option)},     {"default", default_text(option)},
          {"allowed", words(option.allowed)},    {"support", support},
          {"works_with", words(option.working)}, {"why", std::string(option.why)},
          {"with", std::string(option.under)},   {"ours", option.ours},
          {"aliases", words(option.aliases)},    {"short_flag", std::string(option.short_flag)},
          {"help", std::string(option.help)}};
}

}  // namespace

std::string keys_as_table(std::string_view section) {
  require_section(section);
  std::size_t width = 0;
  for (const Option& option : options())
    if (in_section(option, section)) width = std::max(width, option.key.size());
  std::string text;
  for (const Option& option : options())
    if (in_section(option, section))
      text += fmt::format(
          "{:<{}}  {}\n{:<{}}  {}; default {}; supported: {}{}{}\n", option.key, width, option.help,
          "", width, type_text(option), default_text(option), support_text(option),
          option.ours ? "; Tessera's own" : "",
          option.short_flag.empty() ? "" : fmt::format("; short flag: {}", option.short_flag));
  return text;
}

std::string keys_as_json() {
  auto list = nlohmann::ordered_json::array();
  for (const Option& option : options()) list.push_back(as_json(option));
  return json_text(list, 2) + "\n";
}

std::string keys_as_man_page() {
  std::string text =
      ".TH TESSERA\\-CONFIG 5\n.SH NAME\ntessera\\-config \\- keys of a Tessera job file\n.SH "
      "DESCRIPTION\n"
      "A job is a TOML file and flags of the form \\-\\-section.key value; flags take precedence. "
      "The keys are those "
      "of TorchTitan "
      "v0.2.2, and "
      "Tessera's own.\n";
  std::string_view section;
  for (const Option& option : options()) {
    if (section_of(option.key) != section) {
      section = section_of(option.key);
      text += fmt::format(".SH [{}]\n", section);
    }
    text += fmt::format(
        ".TP\n.B {}\n{}.\nType: {}. Default: {}. Supported: {}.{}\n", roff(option.key),
        roff(option.help), roff(type_text(option)), roff(default_text(option)),
        roff(support_text(option)),
        option.short_flag.empty() ? "" : fmt::format(" Short flag: {}.", roff(option.short_flag)));
  }
  return text;
}

std::string keys_as_markdown() {
  const auto rows_of = [](Support support) {
    std::string rows;
    for (const Option& option : options()) {
      if (option.ours || option.support != support) continue;
      const std::string value =
          option.working.empty() ? ""
                                 : fmt::format(" other than {}", fmt::join(option.working, ", "));
      rows += fmt::format(
          "| `{}`{} | {} |\n", option.key, value,
          option.why.empty() ? fmt::format("with `{}`", option.under) : std::string(option.why));
    }
    return rows;
  };
  return "| refused | reason; what works |\n|---|---|\n" + rows_of(Support::refused) +
         "\n| no effect | reason |\n|---|---|\n" + rows_of(Support::harmless);
}

std::string flags_as_words() {
  std::string text;
  for (const Option& option : options()) {
    text += fmt::format("--{}\n", option.key);
    if (!option.short_flag.empty()) text += fmt::format("{}\n", option.short_flag);
    if (is_boolean(option))
      text += fmt::format("--{}.no_{}\n", section_of(option.key), leaf_of(option.key));
  }
  return text;
}

}  // namespace tessera::config
