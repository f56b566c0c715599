// SPDX-License-Identifier: Apache-2.0
// Values as text.
#include <fmt/format.h>

#include <cmath>

#include "tessera/config/option_table.hpp"

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

}  // namespace tessera::config
