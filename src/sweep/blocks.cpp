// SPDX-License-Identifier: Apache-2.0
// The blocks of a sweep file: what varies, and how.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "reading.hpp"
#include "tessera/base/mixed_bits.hpp"
#include "tessera/config/closest_key.hpp"

namespace tessera::sweep {
namespace {

using config::TomlEntry;
using config::TomlTable;
using config::Value;

void gather(const TomlTable& table, const std::string& prefix, std::vector<JobKey>& keys,
            Problems& problems) {
  for (const TomlEntry& entry : table) {
    const std::string name = prefix.empty() ? entry.key : fmt::format("{}.{}", prefix, entry.key);
    const auto* inner = std::get_if<TomlTable>(&entry.node.value);
    if (const config::Option* option = config::find_option(name)) {
      if (option->key == "job.dump_folder" || option->key == "job.config_file")
        problems.add(entry,
                     fmt::format("{} is set by the sweep; use `folder` or `job`", option->key));
      else
        keys.push_back({option, &entry});
    } else if (inner && config::is_section(name)) {
      gather(*inner, name, keys, problems);
    } else {
      const auto near = config::closest_key(name);
      problems.add(entry, fmt::format("unknown key '{}'{}", name.substr(0, 80),
                                      near ? fmt::format("; did you mean '{}'?", *near)
                                           : "; `tessera config keys` lists all keys"));
    }
  }
}

Settings settings_of(const TomlTable& table, Problems& problems) {
  Settings settings;
  for (const JobKey& key : job_keys(table, problems))
    if (auto value = read_value(*key.option, key.entry->node, problems))
      settings.push_back({key.option, std::move(*value)});
  return settings;
}

/// What one key of [random] can become.
struct Source {
  const config::Option* option;
  std::vector<Value> choices;
  Range range;
};

std::optional<Source> read_source(const JobKey& key, Problems& problems) {
  Source source{key.option, {}, {}};
  if (std::holds_alternative<config::TomlList>(key.entry->node.value)) {
    source.choices = read_values(*key.option, key.entry->node, problems);
    return source.choices.empty() ? std::nullopt : std::optional(source);
  }
  const auto range = read_range(*key.option, key.entry->node, false, problems);
  if (!range) return {};
  source.range = *range;
  return source;
}

Value drawn(const Source& source, std::uint64_t bits) {
  const double u = static_cast<double>(bits >> 11) * 0x1p-53;
  if (source.choices.empty()) return source.range.at(u, *source.option);
  return source.choices[static_cast<std::size_t>(u * static_cast<double>(source.choices.size()))];
}

std::optional<std::int64_t> whole(const TomlEntry& entry, std::int64_t least, std::int64_t most,
                                  Problems& problems) {
  const auto* number = std::get_if<std::int64_t>(&entry.node.value);
  if (number && *number >= least && *number <= most) return *number;
  problems.add(
      entry, fmt::format("random.{} must be a whole number from {} to {}", entry.key, least, most));
  return {};
}

constexpr std::int64_t kMostSeed = std::numeric_limits<std::int64_t>::max();

/// Takes seed and count out of the table of [random].
struct RandomHead {
  std::optional<std::int64_t> seed, count;
  TomlTable keys;
};

RandomHead read_head(const TomlEntry& block, const TomlTable& table, Problems& problems) {
  RandomHead head;
  bool seed = false, count = false;
  for (const TomlEntry& entry : table) {
    if (entry.key == "seed")
      seed = true, head.seed = whole(entry, 0, kMostSeed, problems);
    else if (entry.key == "count")
      count = true, head.count = whole(entry, 1, kMostPoints, problems);
    else
      head.keys.push_back(entry);
  }
  if (!seed)
    problems.add(block,
                 "random.seed is missing: set a number; the same seed draws the same points");
  if (!count) problems.add(block, "random.count is missing: set the number of points to draw");
  return head;
}

/// Equal entries of [[list]] or places of [zip] would be equal points.
void refuse_equal_rows(const TomlEntry& block, const Axis& axis, Problems& problems) {
  std::map<std::string, std::size_t> seen;
  for (std::size_t i = 0; i < axis.rows.size(); ++i) {
    Settings row = axis.rows[i];
    std::ranges::sort(row, {}, [](const Setting& setting) { return setting.option->key; });
    const auto [first, is_new] = seen.emplace(describe(row), i + 1);
    if (!is_new && !row.empty())
      problems.add(block, fmt::format("entries {} and {} of {} are equal; remove one",
                                      first->second, i + 1, axis.block));
  }
}

Settings draw(const std::vector<Source>& sources, std::int64_t seed, std::int64_t index,
              const TomlEntry& block, Problems& problems) {
  Settings row;
  for (const Source& source : sources) {
    config::JobConfig scratch;
    const auto bits = random_bits(static_cast<std::uint64_t>(seed),
                                  static_cast<std::uint64_t>(index), source.option->key);
    if (auto wrong = config::assign(*source.option, scratch, drawn(source, bits)))
      return problems.add(block, fmt::format("{} {}", source.option->key, *wrong)), Settings{};
    row.push_back({source.option, config::get(*source.option, scratch)});
  }
  return row;
}

}  // namespace

std::vector<JobKey> job_keys(const TomlTable& table, Problems& problems) {
  std::vector<JobKey> keys;
  gather(table, "", keys, problems);
  std::ranges::stable_sort(
      keys, {}, [](const JobKey& key) { return std::pair(key.entry->line, key.entry->column); });
  return keys;
}

const TomlTable* table_of(const TomlEntry& block, Problems& problems) {
  const auto* table = std::get_if<TomlTable>(&block.node.value);
  if (!table)
    problems.add(block,
                 fmt::format("'{0}' is a section; write [{0}] and its keys below", block.key));
  if (table && table->empty()) problems.add(block, fmt::format("[{}] is empty", block.key));
  return table;
}

std::vector<const TomlTable*> tables_of(const TomlEntry& block, Problems& problems) {
  std::vector<const TomlTable*> tables;
  if (const auto* list = std::get_if<config::TomlList>(&block.node.value))
    for (const config::TomlNode& node : *list)
      if (const auto* table = std::get_if<TomlTable>(&node.value); table && !table->empty())
        tables.push_back(table);
  const auto* list = std::get_if<config::TomlList>(&block.node.value);
  if (!list || list->empty() || tables.size() != list->size())
    problems.add(block, fmt::format("write [[{}]] and keys below, once for each entry", block.key));
  return tables;
}

/// splitmix64 over the key's bytes (FNV-1a), the seed and the number of the draw.
std::uint64_t random_bits(std::uint64_t seed, std::uint64_t index, std::string_view key) {
  std::uint64_t state = 0xcbf29ce484222325;
  for (const unsigned char c : key) state = (state ^ c) * 0x100000001b3;
  for (const std::uint64_t word : {seed, index})
    state = mixed_bits(state + word + 0x9e3779b97f4a7c15);
  return state;
}

std::optional<Axis> read_random(const TomlEntry& block, Problems& problems) {
  const TomlTable* table = table_of(block, problems);
  if (!table || table->empty()) return {};
  const RandomHead head = read_head(block, *table, problems);
  std::vector<Source> sources;
  for (const JobKey& key : job_keys(head.keys, problems))
    if (auto source = read_source(key, problems)) sources.push_back(std::move(*source));
  if (head.keys.empty()) problems.add(block, "[random] names no key to draw");
  Axis axis{"random", {}};
  for (std::int64_t i = 0; head.seed && i < head.count.value_or(0) && !sources.empty(); ++i)
    axis.rows.push_back(draw(sources, *head.seed, i, block, problems));
  return axis.rows.empty() ? std::nullopt : std::optional(std::move(axis));
}

std::optional<Axis> read_list(const TomlEntry& block, Problems& problems) {
  Axis axis{"list", {}};
  for (const TomlTable* table : tables_of(block, problems))
    axis.rows.push_back(settings_of(*table, problems));
  refuse_equal_rows(block, axis, problems);
  return axis.rows.empty() ? std::nullopt : std::optional(std::move(axis));
}

std::optional<Axis> read_zip(const TomlEntry& block, Problems& problems) {
  const TomlTable* table = table_of(block, problems);
  if (!table) return {};
  Axis axis{"zip", {}};
  bool is_even = true;
  for (const JobKey& key : job_keys(*table, problems)) {
    const auto* list = std::get_if<config::TomlList>(&key.entry->node.value);
    std::vector<Value> values;  // a value may be in a row twice: the other keys tell the rows apart
    if (list)
      for (const config::TomlNode& node : *list)
        if (auto value = read_value(*key.option, node, problems))
          values.push_back(std::move(*value));
    if (!list) values = read_values(*key.option, key.entry->node, problems);
    if (values.empty()) continue;
    if (axis.rows.empty()) axis.rows.resize(values.size());
    if (values.size() != axis.rows.size()) {
      problems.add(*key.entry,
                   fmt::format("{} has {} values, {} has {}; [zip] needs equally many of each",
                               key.option->key, values.size(),
                               axis.rows.front().front().option->key, axis.rows.size()));
      is_even = false;
      continue;
    }
    for (std::size_t i = 0; i < values.size(); ++i)
      axis.rows[i].push_back({key.option, std::move(values[i])});
  }
  if (is_even) refuse_equal_rows(block, axis, problems);
  return axis.rows.empty() ? std::nullopt : std::optional(std::move(axis));
}

std::vector<Axis> read_grid(const TomlEntry& block, Problems& problems) {
  std::vector<Axis> axes;
  const TomlTable* table = table_of(block, problems);
  if (!table) return axes;
  for (const JobKey& key : job_keys(*table, problems)) {
    Axis axis{"grid", {}};
    for (Value& value : read_values(*key.option, key.entry->node, problems))
      axis.rows.push_back({{key.option, std::move(value)}});
    if (!axis.rows.empty()) axes.push_back(std::move(axis));
  }
  return axes;
}

Settings read_common(const TomlEntry& block, Problems& problems) {
  const TomlTable* table = table_of(block, problems);
  return table ? settings_of(*table, problems) : Settings{};
}

std::vector<Exclusion> read_exclusions(const TomlEntry& block, Problems& problems) {
  std::vector<Exclusion> exclusions;
  for (const TomlTable* table : tables_of(block, problems)) {
    Exclusion exclusion{table->front().line, {}};
    for (const JobKey& key : job_keys(*table, problems)) {
      const auto* list = std::get_if<config::TomlList>(&key.entry->node.value);
      const bool one = !list || config::type_name(*key.option).starts_with("list");
      std::vector<Value> values;
      if (!one) values = read_values(*key.option, key.entry->node, problems);
      if (one)
        if (auto value = read_value(*key.option, key.entry->node, problems))
          values.push_back(std::move(*value));
      exclusion.conditions.push_back({key.option, std::move(values)});
    }
    exclusions.push_back(std::move(exclusion));
  }
  return exclusions;
}

}  // namespace tessera::sweep
