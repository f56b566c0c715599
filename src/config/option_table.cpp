// SPDX-License-Identifier: Apache-2.0
#include "tessera/config/option_table.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "options/declare.hpp"

namespace tessera::config {

namespace {

struct Table {
  std::vector<Option> options;
  std::map<std::string_view, const Option*> by_key;  ///< other spellings too
  std::map<std::string_view, const Option*> by_short_flag;
  std::set<std::string_view> sections;

  Table() {
    for (auto&& part : {job_options(), training_options(), parallelism_options(),
                        checkpoint_options(), quantize_options(), system_options()})
      options.insert(options.end(), part.begin(), part.end());
    for (const Option& option : options) add(option);
  }

  void add(const Option& option) {
    by_key.emplace(option.key, &option);
    for (const std::string_view alias : option.aliases) by_key.emplace(alias, &option);
    if (!option.short_flag.empty()) by_short_flag.emplace(option.short_flag, &option);
    for (auto s = section_of(option.key); !s.empty(); s = section_of(s)) sections.insert(s);
  }
};

const Table& table() {
  static const Table table;
  return table;
}

/// quantize.dense... -> quantize.linear...
std::string canonical(std::string_view name) {
  constexpr std::string_view kDense = "quantize.dense";
  if (!name.starts_with(kDense)) return std::string(name);
  const auto rest = name.substr(kDense.size());
  return rest.empty() || rest.front() == '.' ? "quantize.linear" + std::string(rest)
                                             : std::string(name);
}

}  // namespace

const std::vector<Option>& options() { return table().options; }

const Option* find_option(std::string_view key) {
  const auto found = table().by_key.find(canonical(key));
  return found == table().by_key.end() ? nullptr : found->second;
}

const Option* find_short_flag(std::string_view flag) {
  const auto found = table().by_short_flag.find(flag);
  return found == table().by_short_flag.end() ? nullptr : found->second;
}

bool is_section(std::string_view name) { return table().sections.contains(canonical(name)); }

std::string_view section_of(std::string_view key) {
  const auto dot = key.rfind('.');
  return dot == key.npos ? std::string_view{} : key.substr(0, dot);
}

std::string_view leaf_of(std::string_view key) { return key.substr(key.rfind('.') + 1); }

namespace {

/// Is the feature that this key turns on (true, a degree, a size, a list) turned on?
bool turned_on(const Option& option, const JobConfig& job) {
  const Value value = get(option, job);
  if (const auto* flag = std::get_if<bool>(&value)) return *flag;
  if (const auto* number = std::get_if<std::int64_t>(&value)) return *number > 1;
  if (const auto* list = std::get_if<Strings>(&value)) return !list->empty();
  return true;
}

}  // namespace

bool matters(const Option& option, const JobConfig& job) {
  if (option.relevant && !option.relevant(job)) return false;
  return option.under.empty() || turned_on(*find_option(option.under), job);
}

std::vector<const Option*> left_to_planner(const JobConfig& job) {
  std::vector<const Option*> out;
  for (const Option& option : options())
    if (may_be_left_to_planner(option) && to_text(get(option, job)) == "auto")
      out.push_back(&option);
  return out;
}

bool honoured(const Option& option, const JobConfig& job) {
  if (option.support != Support::refused || !matters(option, job)) return true;
  const Value value = get(option, job);
  return value == default_of(option) ||
         std::ranges::find(option.working, to_text(value)) != option.working.end();
}

}  // namespace tessera::config
