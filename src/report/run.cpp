// SPDX-License-Identifier: Apache-2.0
#include "tessera/report/run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "tessera/base/error.hpp"
#include "tessera/base/json.hpp"
#include "tessera/base/json_reader.hpp"
#include "tessera/base/text_file.hpp"
#include "tessera/config/option_table.hpp"
#include "tessera/config/resolve.hpp"
#include "tessera/metrics/jsonl_sink.hpp"
#include "tessera/metrics/meter.hpp"
#include "tessera/metrics/record_columns.hpp"
#include "tessera/metrics/run_folder.hpp"

namespace tessera::report {
namespace {

namespace fs = std::filesystem;
using metrics::StepRecord;

metrics::Attempt attempt_of(const nlohmann::json& json, const TextSource& source) {
  const auto whole = [&](const char* key, std::int64_t if_absent, std::int64_t most) {
    return json.contains(key) ? JsonNode(json, source)[key].integer(0, most) : if_absent;
  };
  metrics::Attempt attempt;
  attempt.id = json.value("id", "");
  attempt.started = json.value("started", "");
  attempt.first_step = whole("first_step", 1, std::numeric_limits<std::int64_t>::max());
  attempt.ranks = static_cast<int>(whole("ranks", 1, std::numeric_limits<int>::max()));
  attempt.mesh = json.value("mesh", "");
  attempt.hosts = json.value("hosts", std::vector<std::string>());
  attempt.command_line = json.value("command_line", std::vector<std::string>());
  // items() refers to it
  const nlohmann::json versions = json.value("versions", nlohmann::json::object());
  for (const auto& [name, version] : versions.items())
    attempt.versions.emplace_back(name, version.get<std::string>());
  return attempt;
}

std::vector<metrics::Attempt> read_attempts(const fs::path& file) {
  const auto text = read_text(file);
  if (!text) return {};
  const nlohmann::json json = parse_json(*text);
  try {
    std::vector<metrics::Attempt> attempts;
    for (const nlohmann::json& attempt : json.at("attempts"))
      attempts.push_back(attempt_of(attempt, {file, ExitCode::data}));
    return attempts;
  } catch (const nlohmann::json::exception&) {  // both are told below
  } catch (const Error&) {
  }
  fail(ExitCode::data, "{} is not the JSON of a run; remove it to go without the list of attempts",
       file.string());
}

void read_settings(TrainingRun& run) {
  const fs::path file = run.folder / "config.toml";
  try {
    config::JobConfig job = config::resolve({file.string()}).job;
    for (const config::Option& option : config::options())
      if (option.key != "job.config_file")  // the file that was read just now
        run.settings.push_back({std::string(option.key), config::to_text(get(option, job)),
                                config::to_text(default_of(option))});
  } catch (const Error& error) {
    run.settings_problem = error.what();
  }
}

bool has_column(const StepRecord& record, std::string_view name) {
  return std::isfinite(metrics::value_in(record, name)) || name == "loss" || name == "grad_norm";
}

double median_of_last(const TrainingRun& run, std::string_view name) {
  metrics::Window window;
  for (const StepRecord& record : run.records)
    if (const double value = metrics::value_in(record, name); std::isfinite(value))
      window.add(value);
  return window.median();
}

}  // namespace

TrainingRun read_run(const fs::path& folder) {
  const fs::path metrics = folder / metrics::kMetricsFile, attempts = folder / "run.json";
  std::error_code ignored;
  require(fs::is_directory(folder, ignored), ExitCode::usage,
          "{} is not a folder; name the folder of a run (job.dump_folder)", folder.string());
  require(!metrics::is_sweep_folder(folder), ExitCode::usage,
          "{} is the folder of a sweep; run `tessera sweep collect {}`, or name the folder of one "
          "of its points",
          folder.string(), folder.string());
  require(fs::exists(metrics, ignored) || fs::exists(attempts, ignored), ExitCode::usage,
          "{} is not the folder of a run: it has no metrics.jsonl and no run.json; name a "
          "job.dump_folder",
          folder.string());
  TrainingRun run{folder, fs::weakly_canonical(folder).filename().string(),
                  {},     read_attempts(attempts),
                  {},     ""};
  if (fs::exists(metrics, ignored)) run.records = metrics::read_records(metrics);
  run.prediction = metrics::read_prediction(folder);
  read_settings(run);
  return run;
}

std::vector<std::int64_t> resumed_at(const TrainingRun& run) {
  std::vector<std::int64_t> steps;
  for (const metrics::Attempt& attempt : run.attempts) {
    // Records after the first step of a later attempt were dropped, and with them the marks of
    // earlier ones there.
    std::erase_if(steps, [&](std::int64_t step) { return step >= attempt.first_step; });
    if (attempt.first_step > 1) steps.push_back(attempt.first_step);
  }
  return steps;
}

std::vector<Point> column(const TrainingRun& run, std::string_view name) {
  std::vector<Point> points;
  for (const StepRecord& record : run.records)
    if (has_column(record, name))
      points.push_back({static_cast<double>(record.step), metrics::value_in(record, name)});
  return points;
}

Totals totals_of(const TrainingRun& run) {
  Totals totals;
  totals.last_loss = totals.best_loss = std::numeric_limits<double>::quiet_NaN();
  for (const StepRecord& record : run.records) {
    totals.tokens += record.tokens;
    totals.seconds += std::isfinite(record.step_seconds) ? record.step_seconds : 0;
    totals.memory_bytes = std::max(totals.memory_bytes, record.memory_bytes);
    if (!std::isfinite(record.loss)) continue;
    totals.last_loss = record.loss;
    if (record.loss >= totals.best_loss) continue;
    totals.best_loss = record.loss;
    totals.best_step = record.step;
  }
  if (!run.records.empty()) totals.last_step = run.records.back().step;
  if (const auto skipped = column(run, "skipped_steps"); !skipped.empty())
    totals.skipped_steps = static_cast<std::int64_t>(skipped.back().y);
  totals.tokens_per_second = median_of_last(run, "tokens_per_second");
  totals.mfu = median_of_last(run, "mfu");
  return totals;
}

}  // namespace tessera::report
