// SPDX-License-Identifier: Apache-2.0
#include "tessera/report/run_page.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <span>

#include "run_charts.hpp"
#include "tessera/base/atomic_file.hpp"
#include "tessera/base/shell_words.hpp"
#include "tessera/base/text_file.hpp"
#include "tessera/metrics/human.hpp"
#include "tessera/report/page.hpp"

namespace tessera::report {
namespace {

namespace fs = std::filesystem;

std::string setting(const TrainingRun& run, std::string_view key) {
  const auto found = std::ranges::find(run.settings, key, &Setting::key);
  return found == run.settings.end() ? "" : found->value;
}

std::string subtitle_of(const TrainingRun& run) {
  std::vector<std::string> parts;
  if (const std::string config = setting(run, "model.hf_config"); !config.empty())
    parts.push_back(config);
  else if (!run.settings.empty())
    parts.push_back(setting(run, "model.name") + " " + setting(run, "model.flavor"));
  if (!run.attempts.empty()) {
    const metrics::Attempt& last = run.attempts.back();
    parts.push_back(
        fmt::format("{} rank{} ({})", last.ranks, last.ranks == 1 ? "" : "s", last.mesh));
    parts.push_back("started " + run.attempts.front().started);
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

Html summary(const TrainingRun& run) {
  if (run.records.empty()) return paragraph("No step is done yet.");
  const Totals totals = totals_of(run);
  const std::string wanted = setting(run, "training.steps");
  std::vector<std::pair<std::string, std::string>> all{
      {"steps", wanted.empty() ? fmt::format("{}", totals.last_step)
                               : fmt::format("{} of {}", totals.last_step, wanted)},
      {"last loss", short_number(totals.last_loss)},
      {fmt::format("best loss (step {})", totals.best_step), short_number(totals.best_loss)},
      {"tokens per second", metrics::human_count(totals.tokens_per_second)},
      {"tokens", metrics::human_count(static_cast<double>(totals.tokens))},
      {"time in steps", metrics::human_duration(totals.seconds)},
      {"peak memory of a rank", metrics::human_bytes(totals.memory_bytes)}};
  if (std::isfinite(totals.mfu)) all.emplace_back("MFU", fmt::format("{:.1f} %", 100 * totals.mfu));
  if (totals.skipped_steps > 0)
    all.emplace_back("skipped steps", fmt::format("{}", totals.skipped_steps));
  return figures(all);
}

std::vector<Mark> marks_of(const TrainingRun& run) {
  std::vector<Mark> marks;
  for (const std::int64_t step : resumed_at(run))
    marks.push_back({static_cast<double>(step), "resumed"});
  return marks;
}

Html chart_of(const TrainingRun& run, const ColumnChart& what, std::vector<Series> more = {}) {
  std::vector<Series> series{{std::string(what.column), column(run, what.column)}};
  series.insert(series.end(), more.begin(), more.end());
  return drawn(what, std::move(series), marks_of(run));
}

/// Extra columns that end so, e.g. "/loss", but for those that begin so.
std::vector<Series> columns_that(const TrainingRun& run, std::string_view begin,
                                 std::string_view end) {
  std::set<std::string> names;
  for (const metrics::StepRecord& record : run.records)
    for (const auto& [name, value] : record.extra)
      if (name.starts_with(begin) && name.ends_with(end)) names.insert(name);
  std::vector<Series> series;
  for (const std::string& name : names) series.push_back({name, column(run, name)});
  return series;
}

Html curves(const TrainingRun& run) {
  std::vector<Html> charts{chart_of(run, loss_chart(), columns_that(run, "validation/loss", "")),
                           chart_of(run, rate_chart()), chart_of(run, norm_chart()),
                           chart_of(run, speed_chart())};
  if (auto series = columns_that(run, "data/", "/loss"); !series.empty())
    charts.push_back(
        line_chart({.title = "Loss of each source", .series = std::move(series), .smooth = true}));
  if (auto series = columns_that(run, "moe/", "/load_max_over_mean"); !series.empty())
    charts.push_back(line_chart(
        {.title = "Load of the busiest expert, over the mean", .series = std::move(series)}));
  return grid(charts);
}

/// Seconds of a step and their share, over the last steps.
Html times(const TrainingRun& run) {
  const auto recent = std::span(run.records).last(std::min<std::size_t>(50, run.records.size()));
  const TrainingRun part{run.folder, run.name, {recent.begin(), recent.end()}, {}, {}, ""};
  double all = 0, rest = 0;
  for (const metrics::StepRecord& record : recent)
    if (std::isfinite(record.step_seconds)) all += record.step_seconds;
  if (all <= 0) return {};  // records that do not say how long a step took
  rest = all;
  Table of{{{"part of a step, on rank 0"}, {"seconds", true}, {"share", true}}, {}};
  const auto add = [&](std::string name, double seconds) {
    of.rows.push_back({{std::move(name), short_number(seconds / static_cast<double>(recent.size())),
                        fmt::format("{:.1f} %", 100 * seconds / all)}});
  };
  for (const auto& [name, text] : {std::pair{"time/forward", "forward"},
                                   {"time/backward", "backward"},
                                   {"time/communication", "waiting for other ranks, gradient sums"},
                                   {"time/optimizer", "optimizer"},
                                   {"time/data", "data"}}) {
    double sum = 0;
    for (const Point& p : column(part, name)) sum += p.y;
    add(text, sum);
    rest -= sum;
  }
  add("other", std::max(0.0, rest));
  add("whole step", all);
  of.rows.back().strong = true;
  double waited = 0;
  for (const Point& p : column(part, "comm/exposed_seconds")) waited += p.y;
  return paragraph(fmt::format("Mean of the last {} steps. The rank that waits most for others "
                               "does so for {:.1f} % of the time.",
                               recent.size(), 100 * waited / all)) +
         table(of);
}

/// What the planner predicted of the last attempt, beside what was measured.
Html prediction_of(const TrainingRun& run) {
  if (!run.prediction) return {};
  Table of{{{"of a step"}, {"predicted", true}, {"measured", true}, {"difference", true}}, {}};
  for (const auto& rows : {overview(*run.prediction), part_rows(*run.prediction)})
    for (const metrics::PredictionRow& row : rows)
      of.rows.push_back({{row.name, row.predicted, row.measured, row.difference}});
  of.rows.front().strong = true;
  return paragraph(fmt::format("Predicted for {}. Memory is that of the tensors of the largest "
                               "rank; times of a step are means of all ranks.",
                               run.prediction->of)) +
         table(of);
}

/// The command of an attempt as a shell takes it: run.json has the words after `train`.
std::string shown(const std::vector<std::string>& words) {
  return "tessera train " + shell_words(words);
}

Html attempts_of(const TrainingRun& run) {
  Table of{
      {{"started (UTC)"}, {"first step", true}, {"ranks", true}, {"mesh"}, {"hosts"}, {"command"}},
      {}};
  for (const metrics::Attempt& attempt : run.attempts)
    of.rows.push_back(
        {{attempt.started, fmt::format("{}", attempt.first_step), fmt::format("{}", attempt.ranks),
          attempt.mesh, fmt::format("{}", fmt::join(attempt.hosts, " ")),
          shown(attempt.command_line)}});
  return table(of);
}

Html skipped_steps(const TrainingRun& run) {
  Table of{{{"step", true}, {"loss", true}, {"gradient norm", true}}, {}};
  double before = 0;
  for (const metrics::StepRecord& record : run.records) {
    const auto count = std::ranges::find(record.extra, std::string("skipped_steps"),
                                         &std::pair<std::string, double>::first);
    if (count == record.extra.end()) continue;
    if (count->second > before)
      of.rows.push_back({{fmt::format("{}", record.step), short_number(record.loss),
                          short_number(record.grad_norm)}});
    before = count->second;
  }
  return of.rows.empty() ? Html{} : table(of);
}

Html settings_of(const TrainingRun& run) {
  if (!run.settings_problem.empty())
    return paragraph("config.toml cannot be read by this program: " + run.settings_problem);
  Table of{{{"key"}, {"value"}, {"default"}}, {}};
  for (const Setting& s : run.settings)
    if (s.value != s.default_value) of.rows.push_back({{s.key, s.value, s.default_value}});
  return table(of);
}

Html files_of(const TrainingRun& run, const fs::path& page) {
  Table of{{{"file"}, {"contents"}}, {}};
  const fs::path from = fs::absolute(page).parent_path();
  for (const auto& [name, text] : {std::pair{"metrics.jsonl", "every step"},
                                   {"config.toml", "the configuration of the last attempt"},
                                   {"run.json", "every attempt"},
                                   {"prediction.json", "predicted and measured figures"},
                                   {"machine.toml", "the machine that they are predicted for"},
                                   {"loss.svg", "the loss curve"},
                                   {"pipeline.svg", "the pipeline's timeline"},
                                   {"sample.txt", "what the model wrote"}})
    if (std::error_code ignored; fs::exists(run.folder / name, ignored))
      of.rows.push_back(
          {{{name, fs::absolute(run.folder / name).lexically_relative(from).string()}, text}});
  return table(of);
}

/// A section, if there is something in it.
void add(Page& page, const std::string& heading, const Html& content) {
  if (!content.text.empty()) page.section(heading, content);
}

}  // namespace

std::string run_page(const TrainingRun& run, const fs::path& file) {
  constexpr std::size_t kMostSampleBytes = 64 << 10;
  Page page("Run " + run.name, subtitle_of(run));
  page.section("Summary", summary(run));
  if (!run.records.empty()) {
    page.section("Curves", curves(run));
    add(page, "Time", times(run));
  }
  add(page, "Prediction", prediction_of(run));
  if (const auto svg = read_text(run.folder / "pipeline.svg"))
    page.section("Pipeline", picture(*svg, "timeline of the pipeline"));
  if (const auto text = read_text(run.folder / "sample.txt"))
    page.section("Sample", preformatted(std::string_view(*text).substr(0, kMostSampleBytes)));
  add(page, "Skipped steps", skipped_steps(run));
  if (!run.attempts.empty()) page.section("Attempts", attempts_of(run));
  page.section("Settings that are not the defaults", settings_of(run));
  page.section("Files", files_of(run, file));
  return page.html();
}

void write_run_page(const fs::path& folder, const fs::path& page) {
  write_file_atomically(page, run_page(read_run(folder), page));
}

}  // namespace tessera::report
