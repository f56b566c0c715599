// SPDX-License-Identifier: Apache-2.0
#include "tessera/report/comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string_view>

#include "comparison_tables.hpp"

namespace tessera::report {
namespace {

namespace fs = std::filesystem;

double relative_difference(double a, double b) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  if (!std::isfinite(a) || !std::isfinite(b)) return std::numeric_limits<double>::infinity();
  return std::abs(a - b) / std::max(std::abs(a), std::numeric_limits<double>::min());
}

/// The last `parts` parts of a path.
std::string end_of(const fs::path& path, std::size_t parts) {
  const std::vector<fs::path> all(path.begin(), path.end());
  fs::path end;
  for (std::size_t i = all.size() - std::min(parts, all.size()); i < all.size(); ++i) end /= all[i];
  return end.string();
}

constexpr const char* kNotKnown = "?";

/// Whether those that are known do.
bool differ(const std::vector<std::string>& values) {
  std::set<std::string> distinct(values.begin(), values.end());
  distinct.erase(kNotKnown);
  return distinct.size() > 1;
}

std::string difference_text(const Divergence& d, double tolerance) {
  if (d.common_steps == 0) return "no step in common";
  if (!d.first_difference)
    return fmt::format("equal in all {} common steps, bit for bit", d.common_steps);
  const double percent = 100 * d.largest;
  const std::string beyond =
      d.first_beyond ? fmt::format("beyond {:g} % from step {}", 100 * tolerance, *d.first_beyond)
                     : fmt::format("never beyond {:g} %", 100 * tolerance);
  return fmt::format("first differs at step {}; {}; largest {} % at step {}", *d.first_difference,
                     beyond, std::isfinite(percent) ? short_number(percent) : "inf",
                     d.largest_step);
}

}  // namespace

Divergence divergence(const TrainingRun& a, const TrainingRun& b, double tolerance) {
  Divergence result;
  for (auto i = a.records.begin(), j = b.records.begin();
       i != a.records.end() && j != b.records.end();) {
    if (i->step != j->step) {
      i->step < j->step ? ++i : ++j;
      continue;
    }
    ++result.common_steps;
    const double difference = relative_difference(i->loss, j->loss);
    if (difference > 0 && !result.first_difference) result.first_difference = i->step;
    if (difference > tolerance && !result.first_beyond) result.first_beyond = i->step;
    if (difference > result.largest) result.largest = difference, result.largest_step = i->step;
    ++i, ++j;
  }
  return result;
}

std::vector<SettingDifference> different_settings(const std::vector<TrainingRun>& runs) {
  std::vector<SettingDifference> differences;
  const auto known =
      std::ranges::find_if(runs, [](const TrainingRun& run) { return !run.settings.empty(); });
  if (known == runs.end()) return differences;
  for (std::size_t k = 0; k < known->settings.size(); ++k) {
    SettingDifference difference{known->settings[k].key, {}};
    for (const TrainingRun& run : runs)
      difference.values.push_back(run.settings.empty() ? kNotKnown : run.settings[k].value);
    if (differ(difference.values) && difference.key != "job.dump_folder")
      differences.push_back(std::move(difference));
  }
  return differences;
}

std::vector<std::string> names_of(const std::vector<TrainingRun>& runs) {
  std::vector<std::string> names;
  std::vector<fs::path> paths;
  for (const TrainingRun& run : runs) paths.push_back(fs::weakly_canonical(run.folder));
  for (const fs::path& path : paths) {
    std::size_t parts = 1;
    const auto same = [&](const fs::path& other) {
      return other != path && end_of(other, parts) == end_of(path, parts);
    };
    while (std::ranges::any_of(paths, same)) ++parts;
    names.push_back(end_of(path, parts));
  }
  return names;
}

Table results_table(const std::vector<TrainingRun>& runs) {
  Table table{{{"run"},
               {"steps", true},
               {"last loss", true},
               {"best loss", true},
               {"at step", true},
               {"tokens/s", true},
               {"skipped", true}},
              {}};
  const std::vector<std::string> names = names_of(runs);
  std::vector<double> best;
  for (const TrainingRun& run : runs) best.push_back(totals_of(run).best_loss);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const Totals totals = totals_of(runs[i]);
    const auto loss = [](double value) {
      return std::isfinite(value) ? fmt::format("{:.5f}", value) : std::string("-");
    };
    const bool is_best =
        std::ranges::none_of(best, [&](double other) { return other < best[i]; }) &&
        std::isfinite(best[i]);
    table.rows.push_back(
        {{names[i], fmt::format("{}", totals.last_step), loss(totals.last_loss),
          loss(totals.best_loss), fmt::format("{}", totals.best_step),
          short_number(totals.tokens_per_second), fmt::format("{}", totals.skipped_steps)},
         is_best});
  }
  return table;
}

namespace {

/// What the last attempt of a run has, and a word where earlier ones had something else. "" without
/// a list of attempts.
template <class Value>
std::string last_value(const TrainingRun& run, const Value& value) {
  if (run.attempts.empty()) return "";
  const std::string last = value(run.attempts.back());
  const bool changed = std::ranges::any_of(
      run.attempts, [&](const metrics::Attempt& attempt) { return value(attempt) != last; });
  return changed ? fmt::format("{} (last of {} attempts)", last, run.attempts.size()) : last;
}

void add_row(Table& table, const std::string& name, const std::vector<std::string>& values) {
  Row row{{name}};
  row.cells.insert(row.cells.end(), values.begin(), values.end());
  table.rows.push_back(std::move(row));
}

/// A row of what the last attempt of each run has, if that differs.
template <class Value>
void add_if_different(Table& table, const std::vector<TrainingRun>& runs, const char* name,
                      const Value& value) {
  std::vector<std::string> values;
  for (const TrainingRun& run : runs) values.push_back(last_value(run, value));
  if (differ(values)) add_row(table, name, values);
}

std::string setting_of(const TrainingRun& run, std::string_view key) {
  const auto found = std::ranges::find(run.settings, key, &Setting::key);
  return found == run.settings.end() ? kNotKnown : found->value;
}

/// Sequences of the last step.
std::string global_batch_of(const TrainingRun& run) {
  const std::string sequence = setting_of(run, "training.seq_len");
  if (run.records.empty() || sequence == kNotKnown) return kNotKnown;
  return fmt::format("{}", run.records.back().tokens / std::stoll(sequence));
}

/// Its row, where a run leaves it to ranks and mesh, and runs differ in it or in how they set it.
void add_global_batch(Table& table, const std::vector<TrainingRun>& runs) {
  std::vector<std::string> set, batches;
  for (const TrainingRun& run : runs) {
    set.push_back(setting_of(run, "training.global_batch_size"));
    batches.push_back(global_batch_of(run));
  }
  const bool derived = std::ranges::find(set, "-1") != set.end();
  if (derived && (differ(batches) || differ(set))) add_row(table, "global batch", batches);
}

}  // namespace

Table settings_table(const std::vector<TrainingRun>& runs) {
  Table table{{{"setting"}}, {}};
  for (const std::string& name : names_of(runs)) table.columns.push_back({name});
  for (const SettingDifference& difference : different_settings(runs))
    add_row(table, difference.key, difference.values);
  add_if_different(table, runs, "ranks",
                   [](const metrics::Attempt& of) { return fmt::format("{}", of.ranks); });
  add_if_different(table, runs, "mesh", [](const metrics::Attempt& of) { return of.mesh; });
  add_global_batch(table, runs);
  return table;
}

Table divergence_table(const std::vector<TrainingRun>& runs, double tolerance) {
  const std::vector<std::string> names = names_of(runs);
  Table table{{{"run"}, {"loss, compared with " + names[0]}}, {}};
  for (std::size_t i = 1; i < runs.size(); ++i)
    table.rows.push_back(
        {{names[i], difference_text(divergence(runs[0], runs[i], tolerance), tolerance)}});
  return table;
}

std::vector<std::string> unread_settings(const std::vector<TrainingRun>& runs) {
  std::vector<std::string> lines;
  const std::vector<std::string> names = names_of(runs);
  for (std::size_t i = 0; i < runs.size(); ++i)
    if (!runs[i].settings_problem.empty())
      lines.push_back(
          fmt::format("settings of {} are not known: {}", names[i], runs[i].settings_problem));
  return lines;
}

}  // namespace tessera::report
