// SPDX-License-Identifier: Apache-2.0
// Mistakes drawn from the option table by a seeded generator, the same on every rank.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "tessera/config/option_table.hpp"

namespace tessera::config::test {

/// A mistake: what stands in the file or on the command line, and what the message must say.
struct Mistake {
  std::string kind;
  std::vector<std::string> lines;  ///< of the file; the last one is the mistake
  std::vector<std::string> flags;
  std::string expected;
  bool blames_flag = false;
  bool exact = false;  ///< the message names the last line, and no other

  std::string text() const {
    std::string all;
    for (const std::string& line : lines) all += line + "\n";
    return all;
  }
};

class Generator {
 public:
  explicit Generator(unsigned seed) : random_(seed) {}

  Mistake misspelt_key() {
    const Option& option = draw([](const Option& o) { return leaf_of(o.key).size() >= 6; });
    const std::string wrong =
        std::string(section_of(option.key)) + "." + misspell(leaf_of(option.key));
    if (find_option(wrong)) return misspelt_key();
    return in_file_or_flag("misspelt key", wrong, "1", std::string(option.key));
  }

  Mistake misspelt_section() {
    const Option& option = draw([](const Option& o) {
      return section_of(o.key).size() >= 5 && section_of(o.key).find('.') == o.key.npos;
    });
    const std::string section = misspell(section_of(option.key));
    if (is_section(section)) return misspelt_section();
    return {"misspelt section",
            {"[" + section + "]"},
            {},
            "did you mean '" + std::string(section_of(option.key)) + "'"};
  }

  Mistake wrong_type() {
    const Option& option = draw([](const Option& o) { return type_name(o) != "string"; });
    const bool list = type_name(option).starts_with("list");
    const std::string value =
        list ? "3" : pick<std::string>({"\"seven\"", "[\"a\"]", "1979-05-27"});
    return in_file("wrong type", option.key, value, "must be");
  }

  Mistake wrong_type_of_string() {
    const Option& option = draw([](const Option& o) { return type_name(o) == "string"; });
    return in_file("wrong type", option.key,
                   pick<std::string>({"3", "true", "2.5", "[\"a\"]", "{a = 1}"}), "must be");
  }

  Mistake out_of_range() {
    const Option& option =
        draw([](const Option& o) { return std::isfinite(o.minimum) && !o.minus_one; });
    const bool integer = type_name(option) == "integer";
    const std::string value =
        integer ? std::to_string(static_cast<long>(option.minimum) - 1 - number(5)) : "-0.5";
    return in_file_or_flag("out of range", std::string(option.key), value, "", "must be a");
  }

  Mistake bad_choice() {
    const Option& option =
        draw([](const Option& o) { return o.allowed.size() > 1 && o.key != "model.name"; });
    const auto right =
        option.allowed[static_cast<std::size_t>(number(static_cast<int>(option.allowed.size())))];
    if (right.size() < 5) return bad_choice();
    const std::string wrong = misspell(right);
    JobConfig job;
    if (!assign(option, job, wrong)) return bad_choice();
    return in_file_or_flag("bad choice", std::string(option.key), "\"" + wrong + "\"",
                           std::string(right));
  }

  Mistake broken_toml() {
    return {
        "broken TOML",
        {pick<std::string>({"[training", "steps 1", "steps = ", "dataset = \"c4", "= 3",
                            "steps = 1 2", "[[training]", "x = {a = 1", "steps = 0x", "a = 'b' 'c'",
                            "lr = 1e", "\xff\xfe = 1", "x = [1, 2", "[]", "dtype = float32"})},
        {},
        "not valid TOML"};
  }

  Mistake duplicate() {
    const Option& option = draw([](const Option& o) {
      return type_name(o) == "integer" && section_of(o.key) == "training";
    });
    const std::string line = std::string(leaf_of(option.key)) + " = 16";
    if (number(2)) return {"duplicate key", {"[training]", line, line}, {}, "twice"};
    const std::string flag = "--" + std::string(option.key);
    return {"duplicate flag",
            {},
            {flag, "16", flag + "=16"},
            flag + ": " + std::string(option.key) + " is given twice",
            true};
  }

  Mistake bad_flag() {
    const Option& option = draw([](const Option& o) { return type_name(o) == "integer"; });
    const std::string flag = "--" + std::string(option.key);
    switch (number(4)) {
      case 0:
        return {"flag without value", {}, {flag}, flag + ": needs a value", true};
      case 1:
        return {"flag with a word", {}, {flag, "many"}, flag + ": must be an integer", true};
      case 2:
        return {"single dash",
                {},
                {flag.substr(1), "1"},
                flag.substr(1) + ": a flag has two dashes: " + flag,
                true};
      default:
        return {"flag without section",
                {},
                {"--" + misspell(leaf_of(option.key)), "1"},
                ": unknown flag",
                true};
    }
  }

  /// Puts comments and a section before it that are right, so that the line is not always the same.
  Mistake behind_filler(Mistake m) {
    // An unterminated bracket is noticed where the file ends.
    m.exact =
        !m.lines.empty() && m.kind != "broken TOML" && m.lines.back().find_first_of("[{") != 0;
    m.lines.insert(m.lines.begin(), {"[experimental]", "custom_import = \"\""});
    m.lines.insert(m.lines.begin(), static_cast<std::size_t>(1 + number(12)), "# line");
    return m;
  }

 private:
  int number(int below) { return std::uniform_int_distribution<int>(0, below - 1)(random_); }

  template <class T>
  T pick(std::vector<T> from) {
    return from[static_cast<std::size_t>(number(static_cast<int>(from.size())))];
  }

  const Option& draw(const std::function<bool(const Option&)>& wanted) {
    for (;;) {
      const Option& option =
          options()[static_cast<std::size_t>(number(static_cast<int>(options().size())))];
      if (wanted(option) && option.key != "job.config_file" &&
          section_of(option.key) != "experimental")
        return option;
    }
  }

  /// One slip of the finger: a letter lost, doubled, replaced, or two swapped.
  std::string misspell(std::string_view word) {
    std::string out(word);
    const auto at = static_cast<std::size_t>(1 + number(static_cast<int>(word.size()) - 2));
    switch (number(4)) {
      case 0:
        out.erase(at, 1);
        break;
      case 1:
        out.insert(at, 1, out[at]);
        break;
      case 2:
        out[at] = out[at] == 'q' ? 'k' : 'q';
        break;
      default:
        std::swap(out[at], out[at + 1]);
    }
    return out == word ? misspell(word) : out;
  }

  Mistake in_file(const std::string& kind, std::string_view key, const std::string& value,
                  const std::string& expected) {
    return {kind,
            {fmt::format("[{}]", section_of(key)), fmt::format("{} = {}", leaf_of(key), value)},
            {},
            expected};
  }

  Mistake in_file_or_flag(const std::string& kind, const std::string& key, const std::string& value,
                          const std::string& suggestion, std::string expected = "") {
    const bool flag = number(2);
    const std::string dashes = flag && value == "1" ? "--" : "";
    if (!suggestion.empty()) expected = "did you mean '" + dashes + suggestion + "'";
    if (!flag) return in_file(kind, key, value, expected);
    std::string text = value;
    std::erase(text, '"');
    return {kind + " as a flag", {}, {"--" + key, text}, expected, true};
  }

  std::mt19937 random_;
};

/// One hundred of all kinds.
inline std::vector<Mistake> hundred_mistakes(unsigned seed) {
  Generator g(seed);
  const std::vector<std::pair<int, std::function<Mistake()>>> plan{
      {30, [&] { return g.misspelt_key(); }}, {8, [&] { return g.misspelt_section(); }},
      {10, [&] { return g.wrong_type(); }},   {6, [&] { return g.wrong_type_of_string(); }},
      {15, [&] { return g.out_of_range(); }}, {15, [&] { return g.bad_choice(); }},
      {6, [&] { return g.broken_toml(); }},   {4, [&] { return g.duplicate(); }},
      {6, [&] { return g.bad_flag(); }}};
  std::vector<Mistake> all;
  for (const auto& [times, make] : plan)
    for (int i = 0; i < times; ++i) all.push_back(g.behind_filler(make()));
  return all;
}

}  // namespace tessera::config::test
