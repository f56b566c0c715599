// SPDX-License-Identifier: Apache-2.0
// Values as text, and back.
#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "tessera/config/option_table.hpp"
#include "toml_list.hpp"

namespace tessera::config {
namespace {

std::string number_text(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number > 0 ? "inf" : "-inf";
  std::string text = fmt::format("{}", number);
  return text.find_first_of(".e") == text.npos ? text + ".0" : text;
}

std::string quoted_text(std::string_view text) {
  std::string out = "\"";
  for (const unsigned char c : text) {
    if (c == '"' || c == '\\')
      out += '\\', out += static_cast<char>(c);
    else if (c == '\n')
      out += "\\n";
    else if (c == '\t')
      out += "\\t";
    else if (c < 0x20 || c == 0x7f)
      out += fmt::format("\\u{:04X}", c);
    else
      out += static_cast<char>(c);
  }
  return out + '"';
}

template <class List, class F>
std::string bracketed(const List& list, F&& element) {
  std::string text;
  for (const auto& item : list) text += (text.empty() ? "" : ", ") + element(item);
  return "[" + text + "]";
}

std::string list_text(const Strings& list) {
  return bracketed(list, [](const std::string& text) { return quoted_text(text); });
}

Strings split(std::string_view text, char separator) {
  Strings parts;
  while (!text.empty()) {
    const auto end = std::min(text.find(separator), text.size());
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

template <class T>
Value read_number(std::string_view text) {
  const std::string_view digits = text.starts_with('+') ? text.substr(1) : text;
  T number{};
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc{} || end != digits.data() + digits.size() || digits.empty())
    return std::string(text);
  return number;
}

Value read_boolean(std::string_view text) {
  if (text == "true" || text == "True") return true;
  if (text == "false" || text == "False") return false;
  return std::string(text);
}

std::vector<Strings> split_twice(std::string_view text) {
  std::vector<Strings> lists;
  for (const std::string& part : split(text, ';')) lists.push_back(split(part, ','));
  return lists;
}

/// Items with commas, or a list in TOML. What one pair of brackets encloses is no pattern: that
/// would match nearly every name. Nor is what begins as a list in TOML.
Value read_list(std::string_view text, bool of_lists) {
  const auto first = text.find_first_not_of(' ');
  if (first != text.npos) text = text.substr(first, text.find_last_not_of(' ') + 1 - first);
  const bool enclosed = text.size() > 1 && text.front() == '[' && text.back() == ']';
  if (auto list = enclosed ? toml_list(text) : std::nullopt) {
    const auto* strings = std::get_if<Strings>(&*list);
    return of_lists && strings && strings->empty() ? std::vector<Strings>{} : *std::move(list);
  }
  const bool begins = enclosed && std::string_view("\"'[").find(text[1]) != text.npos;
  if (begins || (enclosed && text.find('[', 1) == text.npos)) return std::string(text);
  return of_lists ? Value{split_twice(text)} : Value{split(text, ',')};
}

}  // namespace

std::string to_toml(const Value& value) {
  if (const auto* on = std::get_if<bool>(&value)) return *on ? "true" : "false";
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return fmt::format("{}", *whole);
  if (const auto* number = std::get_if<double>(&value)) return number_text(*number);
  if (const auto* text = std::get_if<std::string>(&value)) return quoted_text(*text);
  if (const auto* list = std::get_if<Strings>(&value)) return list_text(*list);
  if (const auto* lists = std::get_if<std::vector<Strings>>(&value))
    return bracketed(*lists, &list_text);
  return "none";
}

std::string to_text(const Value& value) {
  const auto* text = std::get_if<std::string>(&value);
  return text ? *text : to_toml(value);
}

Value value_from_text(const Option& option, std::string_view text) {
  if (is_optional(option) && (text == "none" || text == "None")) return {};
  const std::string_view type = type_name(option);
  if (type == "boolean") return read_boolean(text);
  if (type == "integer") return read_number<std::int64_t>(text);
  if (type == "number") return read_number<double>(text);
  if (type.starts_with("list of ")) return read_list(text, type == "list of lists");
  return std::string(text);
}

}  // namespace tessera::config
