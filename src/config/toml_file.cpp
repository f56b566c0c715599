// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <set>

#include "draft.hpp"
#include "tessera/base/suggest.hpp"
#include "tessera/config/closest_key.hpp"
#include "tessera/config/toml_tree.hpp"
#include "toml_parse.hpp"

namespace tessera::config {
namespace {

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
  if (const auto table = parse_toml(path, draft)) tree = tree_of(*table);
  throw_if_wrong(draft.problems);
  return tree;
}

void read_toml_file(const std::string& path, Draft& draft) {
  const auto table = parse_toml(path, draft);
  draft.whole = table.has_value();
  if (table) Walk(path, draft).table(*table, "");
}

}  // namespace tessera::config
