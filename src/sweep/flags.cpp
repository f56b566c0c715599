// SPDX-License-Identifier: Apache-2.0
// Points as words of a command line.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tessera/sweep/sweep.hpp"

namespace tessera::sweep {
namespace {

/// What config::value_from_text() reads back: lists with commas, lists of lists with semicolons
/// between.
std::string flag_text(const config::Value& value) {
  if (const auto* list = std::get_if<config::Strings>(&value))
    return fmt::format("{}", fmt::join(*list, ","));
  if (const auto* number = std::get_if<double>(&value)) return fmt::format("{}", *number);
  const auto* lists = std::get_if<std::vector<config::Strings>>(&value);
  if (!lists) return config::to_text(value);
  std::string text;
  for (const config::Strings& list : *lists)
    text += fmt::format("{}{}", text.empty() ? "" : ";", fmt::join(list, ","));
  return text;
}

}  // namespace

std::string shown_value(const config::Value& value) { return flag_text(value); }

std::vector<std::string> flags(const Sweep& sweep, const Point& point) {
  std::vector<std::string> words;
  for (const Settings* settings : {&sweep.common, &point.settings})
    for (const Setting& setting : *settings)
      words.push_back(fmt::format("--{}={}", setting.option->key, flag_text(setting.value)));
  return words;
}

std::vector<std::string> train_arguments(const Sweep& sweep, const Point& point) {
  std::vector<std::string> words = flags(sweep, point);
  words.insert(words.begin(), sweep.job);
  words.push_back(fmt::format("--job.dump_folder={}/{}", sweep.folder, point_name(point.number)));
  return words;
}

std::string describe(const Settings& settings) {
  std::string text;
  for (const Setting& setting : settings)
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", setting.option->key,
                        shown_value(setting.value));
  return text;
}

}  // namespace tessera::sweep
