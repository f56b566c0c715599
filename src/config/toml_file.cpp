// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <set>

#include "draft.hpp"
#include "tessera/base/suggest.hpp"
#include "tessera/config/closest_key.hpp"
#include "tessera/config/toml_tree.hpp"

namespace tessera::config {
namespace {

constexpr std::size_t kFileBytes = 1 << 20;
constexpr int kRepeatsShown = 50;

/// Reads little more than kFileBytes at most; what is wrong goes to the draft.
std::optional<std::string> read_text(const std::string& path, Draft& draft) {
  std::string text;
  errno = 0;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                             &std::fclose);
  std::array<char, 16384> part;
  for (std::size_t bytes = 1; file && bytes > 0 && text.size() <= kFileBytes;
       text.append(part.data(), bytes))
    bytes = std::fread(part.data(), 1, part.size(), file.get());
  if (!file || std::ferror(file.get()) != 0) {
    draft.complain({path},
                   fmt::format("cannot read the configuration file: {}", std::strerror(errno)));
    return {};
  }
  if (text.size() > kFileBytes) {
    draft.complain({path},
                   fmt::format("larger than {} bytes, the limit for a job file", kFileBytes));
    return {};
  }
  return text;
}

template <class T>
std::optional<std::vector<T>> uniform(const toml::array& array,
                                      std::optional<T> (*element)(const toml::node&)) {
  std::vector<T> list;
  for (const toml::node& node : array) {
    auto item = element(node);
    if (!item) return {};
    list.push_back(std::move(*item));
  }
  return list;
}

std::optional<std::string> string_of(const toml::node& node) {
  return node.value_exact<std::string>();
}

std::optional<Strings> strings_of(const toml::node& node) {
  return node.is_array() ? uniform<std::string>(*node.as_array(), &string_of) : std::nullopt;
}

std::optional<Value> array_value(const toml::array& array) {
  if (auto strings = uniform<std::string>(array, &string_of)) return Value{std::move(*strings)};
  if (auto lists = uniform<Strings>(array, &strings_of)) return Value{std::move(*lists)};
  return {};
}

/// Empty for what no key takes: dates, lists of numbers, lists of several types.
std::optional<Value> value_of(const toml::node& node) {
  if (auto v = node.value_exact<bool>()) return Value{*v};
  if (auto v = node.value_exact<std::int64_t>()) return Value{*v};
  if (auto v = node.value_exact<double>()) return Value{*v};
  if (auto v = node.value_exact<std::string>()) return Value{std::move(*v)};
  return node.is_array() ? array_value(*node.as_array()) : std::nullopt;
}

/// A string, or a number as text; empty for anything else.
std::optional<std::string> text_of(const toml::node& node) {
  if (auto text = node.value_exact<std::string>()) return text;
  if (const auto whole = node.value_exact<std::int64_t>()) return fmt::format("{}", *whole);
  if (const auto real = node.value_exact<double>()) return fmt::format("{}", *real);
  return {};
}

/// [0, 1, 1, 0] -> "0,1,1,0".
std::optional<std::string> numbers_of(const toml::node& node) {
  std::string text;
  if (!node.is_array() || !node.as_array()->is_homogeneous<std::int64_t>()) return {};
  for (const toml::node& number : *node.as_array())
    text += fmt::format("{}{}", text.empty() ? "" : ",", *number.value<std::int64_t>());
  return text;
}

/// Walks the parsed tables and sets what it finds.
class Walk {
 public:
  Walk(const std::string& path, Draft& draft) : path_(path), draft_(draft) {}

  void table(const toml::table& table, const std::string& section) {
    for (const auto& [key, node] : table) {
      const toml::source_position& at = key.source().begin;
      const Place place{path_, static_cast<int>(at.line), static_cast<int>(at.column)};
      entry(section.empty() ? std::string(key.str()) : fmt::format("{}.{}", section, key.str()),
            key.str(), node, place);
    }
  }

 private:
  void entry(const std::string& name, std::string_view leaf, const toml::node& node,
             const Place& place) {
    const bool dotted = leaf.find('.') != leaf.npos;  // a quoted key with a dot is not a path
    const Option* option = dotted ? nullptr : find_option(name);
    const bool section = !dotted && is_section(name);
    if (section && node.is_table()) return table(*node.as_table(), name);
    if (section)
      return draft_.complain_of_misread(
          place, fmt::format("'{0}' is a section; write [{0}] and its keys below", name), name);
    if (option) return assign(*option, node, place);
    const bool suggests = draft_.suggests();
    if (node.is_table())
      unknown("section", name, suggests ? closest(name, sections()) : std::nullopt, place);
    else
      unknown("key", name, suggests ? closest_key(name) : std::nullopt, place);
  }

  static Strings sections() {
    std::set<std::string> names;
    for (const Option& option : options())
      for (auto s = section_of(option.key); !s.empty(); s = section_of(s)) names.emplace(s);
    return {names.begin(), names.end()};
  }

  void unknown(const char* what, const std::string& name, const std::optional<std::string>& near,
               const Place& place) {
    const std::string hint = near ? fmt::format("; did you mean '{}'?", *near)
                                  : "; `tessera config keys` lists all keys";
    draft_.complain_of_misread(place, fmt::format("unknown {} '{}'{}", what, shown(name), hint),
                               near);
  }

  /// [[key]] tables, as one list of lists. False if `node` is something else.
  bool rows(const Option& option, const toml::node& node, const Place& place) {
    const toml::array* array = node.as_array();
    if (option.columns.empty() || !array || array->empty() ||
        !array->is_homogeneous(toml::node_type::table))
      return false;
    std::vector<Strings> rows;
    for (const toml::node& element : *array)
      rows.push_back(row(option, *element.as_table(), place));
    draft_.set(option, std::move(rows), place);
    return true;
  }

  Strings row(const Option& option, const toml::table& table, const Place& place) {
    for (const auto& [key, node] : table)
      if (std::ranges::find(option.columns, key.str()) == option.columns.end())
        draft_.complain_of_misread(
            {path_, static_cast<int>(key.source().begin.line),
             static_cast<int>(key.source().begin.column)},
            fmt::format("unknown key '{}' of {}; it has {}", shown(key.str()), option.key,
                        fmt::join(option.columns, ", ")),
            std::string(option.key));
    Strings row;
    const std::size_t needed = option.columns.size() - option.spare_columns;
    for (const std::string_view column : option.columns) {
      const toml::node* node = table.get(column);
      if (!node && row.size() >= needed) break;
      const auto text = node ? text_of(*node) : std::nullopt;
      if (!text)
        draft_.complain_of_misread(
            place,
            fmt::format("{} needs a string \"{}\" in each of its tables", option.key, column),
            std::string(option.key));
      row.push_back(text.value_or(""));
    }
    return row;
  }

  void assign(const Option& option, const toml::node& node, const Place& place) {
    if (rows(option, node, place)) return;
    if (auto numbers = option.list_too ? numbers_of(node) : std::nullopt)
      return draft_.set(option, std::move(*numbers), place);
    if (auto value = value_of(node)) return draft_.set(option, std::move(*value), place);
    const char* found = node.is_table()   ? "a section"
                        : node.is_array() ? "a list of other things"
                                          : "a date or time";
    draft_.complain_of_misread(
        place, fmt::format("{} must be of type {}, not {}", option.key, type_name(option), found),
        std::string(option.key));
  }

  const std::string& path_;
  Draft& draft_;
};

/// Bytes [begin, end) of a line, from 1, without its newline.
std::pair<std::size_t, std::size_t> line_span(std::string_view text, std::size_t line) {
  std::size_t begin = 0;
  for (std::size_t n = 1; n < line; ++n)
    begin = std::min(text.find('\n', begin), text.size() - 1) + 1;
  return {begin, std::min(text.find('\n', begin), text.size())};
}

/// A `key = value` on one line: without it the rest of the file means the same.
bool stands_alone(std::string_view line) {
  const auto first = line.find_first_not_of(" \t");
  const auto even = [&](char open, char close) {
    return std::ranges::count(line, open) == std::ranges::count(line, close);
  };
  return first != line.npos && line[first] != '[' && even('[', ']') && even('{', '}') &&
         line.find("\"\"\"") == line.npos && line.find("'''") == line.npos;
}

/// What toml++ says of `yes`, `True`, `none` and `./data`: a first letter makes it expect a boolean
/// or a number.
bool is_of_a_bare_word(std::string_view description) {
  static constexpr std::array<std::string_view, 6> kSigns{"could not determine value type",
                                                          "boolean: ",
                                                          "expected 'nan'",
                                                          "expected 'inf'",
                                                          "decimal digit, saw '/'",
                                                          "decimal digit, saw '.'"};
  return std::ranges::any_of(
      kSigns, [&](std::string_view sign) { return description.find(sign) != sign.npos; });
}

std::string explain(std::string_view description) {
  constexpr std::string_view kPrefix = "Error while parsing ";
  if (description.starts_with(kPrefix)) description.remove_prefix(kPrefix.size());
  const char* hint =
      is_of_a_bare_word(description) ? "; strings need quotes, and booleans are true or false" : "";
  return fmt::format("not valid TOML: {}{}", description, hint);
}

/// Complains of a syntax error. A key that is written twice is blanked in `text`, and parsing can
/// go on: returns true.
bool recover(const toml::parse_error& error, const std::string& path, std::string& text,
             Draft& draft) {
  const toml::source_position& at = error.source().begin;
  const Place place{path, static_cast<int>(at.line), static_cast<int>(at.column)};
  const auto [begin, end] = line_span(text, at.line);
  const bool again = error.description().find("redefine") != std::string_view::npos;
  if (!again || !stands_alone(std::string_view(text).substr(begin, end - begin)))
    return draft.complain(place, again ? "this key or section is defined twice; keep one"
                                       : explain(error.description())),
           false;
  const std::string line = text.substr(begin, end - begin);
  const std::string key = line.substr(0, line.find('='));
  draft.complain(place, fmt::format("key '{}' is given twice in its section; keep one",
                                    shown(key.substr(0, key.find_last_not_of(" \t") + 1))));
  std::fill(text.begin() + static_cast<std::ptrdiff_t>(begin),
            text.begin() + static_cast<std::ptrdiff_t>(end), ' ');
  return true;
}

std::optional<toml::table> parse(const std::string& path, std::string text, Draft& draft) {
  for (int repeat = 0; repeat < kRepeatsShown; ++repeat) {
    try {
      return toml::parse(text, path);
    } catch (const toml::parse_error& error) {
      if (!recover(error, path, text, draft)) return {};
    }
  }
  return {};
}

TomlNode tree_of(const toml::node& node);

TomlTable tree_of(const toml::table& table) {
  TomlTable entries;
  for (const auto& [key, node] : table) {
    const toml::source_position& at = key.source().begin;
    entries.push_back({std::string(key.str()), static_cast<int>(at.line),
                       static_cast<int>(at.column), tree_of(node)});
  }
  std::ranges::stable_sort(
      entries, {}, [](const TomlEntry& entry) { return std::pair(entry.line, entry.column); });
  return entries;
}

TomlNode tree_of(const toml::node& node) {
  const toml::source_position& at = node.source().begin;
  TomlNode tree{static_cast<int>(at.line), static_cast<int>(at.column), {}};
  if (const auto* table = node.as_table()) return tree.value = tree_of(*table), tree;
  if (const auto* array = node.as_array()) {
    TomlList list;
    for (const toml::node& element : *array) list.push_back(tree_of(element));
    return tree.value = std::move(list), tree;
  }
  if (auto v = node.value_exact<bool>()) tree.value = *v;
  if (auto v = node.value_exact<std::int64_t>()) tree.value = *v;
  if (auto v = node.value_exact<double>()) tree.value = *v;
  if (auto v = node.value_exact<std::string>()) tree.value = std::move(*v);
  return tree;
}

}  // namespace

TomlTable read_toml_tree(const std::string& path) {
  Draft draft;
  TomlTable tree;
  auto text = read_text(path, draft);
  if (text && within_bounds(*text, path, draft))
    if (const auto table = parse(path, std::move(*text), draft)) tree = tree_of(*table);
  throw_if_wrong(draft.problems);
  return tree;
}

void read_toml_file(const std::string& path, Draft& draft) {
  auto text = read_text(path, draft);
  const bool bounded = text && within_bounds(*text, path, draft);
  const auto table = bounded ? parse(path, std::move(*text), draft) : std::nullopt;
  draft.whole = table.has_value();
  if (table) Walk(path, draft).table(*table, "");
}

}  // namespace tessera::config
