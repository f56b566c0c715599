// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <set>

#include "reading.hpp"
#include "tessera/base/suggest.hpp"

namespace tessera::sweep {
namespace {

using config::Option;
using config::Strings;
using config::TomlEntry;
using config::TomlList;
using config::TomlNode;
using config::TomlTable;
using config::Value;

template <class T>
const T* is(const TomlNode& node) {
  return std::get_if<T>(&node.value);
}

std::optional<Strings> strings_in(const TomlList& list) {
  Strings strings;
  for (const TomlNode& node : list) {
    if (!is<std::string>(node)) return {};
    strings.push_back(*is<std::string>(node));
  }
  return strings;
}

std::optional<Value> list_value(const Option& option, const TomlList& list) {
  if (auto strings = strings_in(list)) return Value{std::move(*strings)};
  std::vector<Strings> rows;
  std::string numbers;
  for (const TomlNode& node : list) {
    if (const auto* number = is<std::int64_t>(node))
      numbers += fmt::format("{}{}", numbers.empty() ? "" : ",", *number);
    const auto* inner = is<TomlList>(node);
    if (auto row = inner ? strings_in(*inner) : std::nullopt) rows.push_back(std::move(*row));
  }
  if (rows.size() == list.size()) return Value{std::move(rows)};
  const bool all_numbers =
      std::ranges::all_of(list, [](const TomlNode& node) { return is<std::int64_t>(node); });
  return option.list_too && all_numbers ? std::optional(Value{numbers}) : std::nullopt;
}

std::optional<Value> plain_value(const Option& option, const TomlNode& node) {
  if (const auto* v = is<bool>(node)) return Value{*v};
  if (const auto* v = is<std::int64_t>(node)) return Value{*v};
  if (const auto* v = is<double>(node)) return Value{*v};
  if (const auto* v = is<std::string>(node)) return Value{*v};
  if (const auto* v = is<TomlList>(node)) return list_value(option, *v);
  return {};
}

bool is_integer(const Option& option) { return config::type_name(option) == "integer"; }

std::optional<double> number_in(const TomlNode& node) {
  if (const auto* v = is<std::int64_t>(node)) return static_cast<double>(*v);
  if (const auto* v = is<double>(node); v && std::isfinite(*v)) return *v;
  return {};
}

constexpr double kMostWhole = 0x1p53;  ///< beyond it, a double is not every whole number

/// What is wrong with the ends of a range, or nothing.
std::string fault_of(const Range& range, const Option& option) {
  if (range.first == range.last) return "its two ends are equal";
  if (range.logarithmic && (range.first <= 0 || range.last <= 0))
    return "both ends of a log range must be above 0";
  if (is_integer(option) &&
      (range.first != std::floor(range.first) || range.last != std::floor(range.last)))
    return fmt::format("{} is an integer, so both ends must be whole numbers", option.key);
  if (is_integer(option) && std::max(std::abs(range.first), std::abs(range.last)) > kMostWhole)
    return fmt::format("both ends must be from {:.0f} to {:.0f}", -kMostWhole, kMostWhole);
  return "";
}

bool read_ends(const TomlEntry& entry, Range& range, Problems& problems) {
  const auto* list = is<TomlList>(entry.node);
  const auto first = list && list->size() == 2 ? number_in(list->front()) : std::nullopt;
  const auto last = first ? number_in(list->back()) : std::nullopt;
  if (!last)
    return problems.add(entry, fmt::format("{} needs two numbers: [first, last]", entry.key)),
           false;
  range.logarithmic = entry.key == "log", range.first = *first, range.last = *last;
  return true;
}

bool read_count(const TomlEntry& entry, Range& range, Problems& problems) {
  const auto* count = is<std::int64_t>(entry.node);
  if (!count || *count < 2 || *count > kMostPoints)
    return problems.add(entry,
                        fmt::format("count must be a whole number from 2 to {}", kMostPoints)),
           false;
  range.count = *count;
  return true;
}

/// Reads the entries of the table; false when something is wrong with it.
bool read_entries(const TomlTable& table, bool counted, Range& range, Problems& problems) {
  bool right = true, ends = false;
  for (const TomlEntry& entry : table) {
    if (entry.key == "linear" || entry.key == "log") {
      if (ends) problems.add(entry, "a range is linear or log, not both"), right = false;
      ends = true;
      right &= read_ends(entry, range, problems);
    } else if (entry.key == "count" && counted) {
      right &= read_count(entry, range, problems);
    } else if (entry.key == "count") {
      problems.add(entry, "random.count sets the number of draws; remove count"), right = false;
    } else {
      problems.add(entry, fmt::format("unknown key '{}' of a range{}", entry.key,
                                      did_you_mean(entry.key, {"linear", "log", "count"})));
      right = false;
    }
  }
  return right;
}

bool has(const TomlTable& table, std::initializer_list<std::string_view> keys) {
  return std::ranges::any_of(
      table, [&](const TomlEntry& e) { return std::ranges::find(keys, e.key) != keys.end(); });
}

std::vector<Value> values_of_range(const Option& option, const TomlNode& node, Problems& problems) {
  const auto range = read_range(option, node, true, problems);
  std::vector<Value> values;
  for (std::int64_t i = 0; range && i < range->count; ++i) {
    config::JobConfig scratch;
    const Value value =
        range->at(static_cast<double>(i) / static_cast<double>(range->count - 1), option);
    if (auto wrong = config::assign(option, scratch, value))
      return problems.add(node, fmt::format("{} {}", option.key, *wrong)), std::vector<Value>{};
    values.push_back(config::get(option, scratch));
    if (is_integer(option) && values.size() > 1 && values.back() == values[values.size() - 2])
      return problems.add(node, fmt::format("two of the {} values are {}, rounded to a whole "
                                            "number; choose a smaller count",
                                            range->count, shown_value(values.back()))),
             std::vector<Value>{};
  }
  return values;
}

/// Complains of values that are there twice: two points would be one.
void refuse_repeats(const Option& option, const TomlNode& node, const std::vector<Value>& values,
                    Problems& problems) {
  std::set<Value> seen;
  for (const Value& value : values)
    if (!seen.insert(value).second)
      return problems.add(
          node, fmt::format("{} has the value {} twice; keep one", option.key, shown_value(value)));
}

/// A list of flags has a line for each point, and no quotes keep a line break in it.
bool is_one_line(const std::string& text) {
  return std::ranges::none_of(text, [](unsigned char c) { return c < ' ' && c != '\t'; });
}

/// Whether a flag with this value is read as the same value: commas part the elements of a list.
bool is_a_flag(const Option& option, const Value& value) {
  if (!std::holds_alternative<Strings>(value) &&
      !std::holds_alternative<std::vector<Strings>>(value))
    return true;
  config::JobConfig again;
  return !config::assign(option, again, config::value_from_text(option, shown_value(value))) &&
         config::get(option, again) == value;
}

}  // namespace

std::optional<Value> read_value(const Option& option, const TomlNode& node, Problems& problems) {
  auto value = plain_value(option, node);
  if (!value) {
    problems.add(node, fmt::format("{} must be of type {}", option.key, config::type_name(option)));
    return {};
  }
  if (!is_one_line(shown_value(*value))) {
    problems.add(node, fmt::format("{} has a line break or another control character; a sweep "
                                   "takes values of one line",
                                   option.key));
    return {};
  }
  config::JobConfig scratch;
  if (auto wrong = config::assign(option, scratch, std::move(*value))) {
    problems.add(node, fmt::format("{} {}", option.key, *wrong));
    return {};
  }
  Value assigned = config::get(option, scratch);
  if (is_a_flag(option, assigned)) return assigned;
  problems.add(node, fmt::format("{} has an element that no flag can pass: it is empty, in "
                                 "brackets, or has a comma or a semicolon; name it in the job",
                                 option.key));
  return {};
}

Value Range::at(double t, const Option& option) const {
  const double x = t <= 0   ? first
                   : t >= 1 ? last
                   : logarithmic
                       ? std::exp(std::log(first) + t * (std::log(last) - std::log(first)))
                       : first + t * (last - first);
  if (is_integer(option)) return static_cast<std::int64_t>(std::llround(x));
  // Six digits are the same on every machine, whatever its exp() does with the last bit.
  return t <= 0 || t >= 1 ? x : std::strtod(fmt::format("{:.6g}", x).c_str(), nullptr);
}

std::optional<Range> read_range(const Option& option, const TomlNode& node, bool counted,
                                Problems& problems) {
  const auto complain = [&](std::string text) {
    return problems.add(node, std::move(text)), std::nullopt;
  };
  const auto* table = is<TomlTable>(node);
  const std::string example =
      counted ? "{ log = [1e-4, 1e-2], count = 5 }" : "{ log = [1e-4, 1e-2] }";
  if (!table)
    return complain(fmt::format("{} needs a list of values or a range, {}", option.key, example));
  if (!is_integer(option) && config::type_name(option) != "number")
    return complain(fmt::format("{} is of type {} and has no range; give a list", option.key,
                                type_name(option)));
  Range range{.line = node.line, .column = node.column};
  if (!read_entries(*table, counted, range, problems)) return {};
  if (!has(*table, {"linear", "log"}) || (counted && range.count == 0))
    return complain(fmt::format("this range is incomplete; write {}", example));
  if (const std::string fault = fault_of(range, option); !fault.empty()) return complain(fault);
  return range;
}

std::vector<Value> read_values(const Option& option, const TomlNode& node, Problems& problems) {
  const auto* list = is<TomlList>(node);
  std::vector<Value> values;
  if (!list) {
    values = values_of_range(option, node, problems);
  } else {
    if (list->empty()) problems.add(node, fmt::format("{} has no value", option.key));
    for (const TomlNode& element : *list)
      if (auto value = read_value(option, element, problems)) values.push_back(std::move(*value));
    if (values.size() < list->size()) values.clear();
  }
  refuse_repeats(option, node, values, problems);
  return values;
}

}  // namespace tessera::sweep
