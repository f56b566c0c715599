// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "reading.hpp"

namespace tessera::sweep {
namespace {

std::optional<std::vector<std::int64_t>> whole_numbers(std::string_view text) {
  std::vector<std::int64_t> numbers;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(':', begin), text.size());
    std::int64_t number = 0;
    const auto [stop, error] = std::from_chars(text.data() + begin, text.data() + end, number);
    if (error != std::errc{} || stop != text.data() + end || number < 0 || number > 1'000'000)
      return {};
    numbers.push_back(number);
    begin = end + 1;
  }
  return numbers;
}

}  // namespace

std::optional<std::int64_t> seconds_of(std::string_view text) {
  std::int64_t days = 0;
  const std::size_t dash = text.find('-');
  if (dash != text.npos) {
    const auto number = whole_numbers(text.substr(0, dash));
    if (!number || number->size() != 1) return {};
    days = number->front();
    text.remove_prefix(dash + 1);
  }
  auto parts = whole_numbers(text);
  if (!parts || parts->size() > 3) return {};
  if (dash == text.npos && parts->size() < 3) parts->insert(parts->begin(), 0);
  parts->resize(3);
  const std::int64_t seconds = ((days * 24 + (*parts)[0]) * 60 + (*parts)[1]) * 60 + (*parts)[2];
  return seconds > 0 ? std::optional(seconds) : std::nullopt;
}

std::string time_text(std::int64_t seconds) {
  const std::int64_t days = seconds / 86400, rest = seconds % 86400;
  return fmt::format("{}{:02}:{:02}:{:02}", days > 0 ? fmt::format("{}-", days) : "", rest / 3600,
                     rest / 60 % 60, rest % 60);
}

}  // namespace tessera::sweep
