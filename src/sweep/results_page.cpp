// SPDX-License-Identifier: Apache-2.0
// The page of a sweep.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "key_axis.hpp"
#include "point_files.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/suggest.hpp"
#include "tessera/metrics/human.hpp"

namespace tessera::sweep {
namespace {

constexpr std::size_t kCurves = 100, kSmoothFrom = 100;

/// "lr=0.001 steps=20": the last parts of the keys.
std::string short_settings(const PointStatus& point) {
  std::string text;
  for (const auto& [key, value] : point.values)
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", config::leaf_of(key), text_of(value));
  return text;
}

bool has_result(const PointResult& result) { return std::isfinite(result.best); }

/// The best of each point where points may be compared: one that made fewer steps than the others
/// would look worse than its settings are, and one that skipped steps better. Before any point is
/// done, or where all have skipped steps, those count.
std::vector<double> comparable(const Results& results) {
  const auto rank = [](const PointResult& result) {
    return std::pair(result.status.state != State::done, result.status.skipped > 0);
  };
  std::vector<double> values;
  for (const PointResult& result : results.points)  // the first one has the best rank
    values.push_back(rank(result) == rank(results.points.front())
                         ? result.best
                         : std::numeric_limits<double>::quiet_NaN());
  return values;
}

/// The place of the best comparable point; that of the first one where none is.
std::size_t winner(const std::vector<double>& values) {
  const auto found =
      std::ranges::find_if(values, [](double value) { return std::isfinite(value); });
  return found == values.end() ? 0 : static_cast<std::size_t>(found - values.begin());
}

/// Which points comparable() gives no value.
std::string left_out_note(const Results& results) {
  const PointStatus& first = results.points.front().status;
  std::string text = "Points that are not done have no result here: they made fewer steps.";
  if (any_skipped(results) && first.skipped == 0)
    text += " Points that skipped steps have none either.";
  return text;
}

std::string number_or_dash(double value) {
  return std::isfinite(value) ? report::short_number(value) : "-";
}

report::Html figures_of(const Results& results) {
  std::vector<PointStatus> statuses;
  for (const PointResult& result : results.points) statuses.push_back(result.status);
  const auto count = [&](State state) {
    return std::to_string(std::ranges::count(statuses, state, &PointStatus::state));
  };
  const PointResult& first = results.points[winner(comparable(results))];
  std::vector<std::pair<std::string, std::string>> figures{
      {"points", std::to_string(statuses.size())},
      {"done", count(State::done)},
      {"failed", count(State::failed)}};
  if (has_result(first)) {
    figures.emplace_back("best " + results.by, fmt::format("{:.4f}", first.best));
    figures.emplace_back("by point", std::to_string(first.status.number));
  }
  return report::figures(figures) +
         report::paragraph(summary(statuses) +
                           (has_result(first) ? ". Best: " + short_settings(first.status) : "") +
                           ".");
}

report::Html curves_of(const Results& results) {
  report::LineChart chart;
  chart.title = results.by;
  std::size_t left_out = 0;
  for (const PointResult& result : results.points) {
    if (result.curve.empty()) continue;
    if (chart.series.size() == kCurves) {
      ++left_out;
      continue;
    }
    report::Series series{
        fmt::format("{}: {}", result.status.number, short_settings(result.status)), {}};
    for (const auto& [step, value] : result.curve)
      series.points.push_back({static_cast<double>(step), value});
    chart.smooth |= series.points.size() > kSmoothFrom;
    chart.series.push_back(std::move(series));
  }
  const std::string note =
      left_out == 0
          ? "The eight best points have colors."
          : fmt::format("The eight best points have colors; the {} worst are not drawn.", left_out);
  return report::line_chart(chart) + report::paragraph(note);
}

/// The page of a point's run where there is one, else what it printed.
std::string link_of(const PointStatus& point) {
  for (const char* name : {"index.html", "loss.svg", kOutputFile})
    if (std::filesystem::exists(point.folder / name))
      return (point.folder.filename() / name).string();
  return "";
}

std::string cell_text(const PointStatus& point, const std::string& key) {
  const auto value = std::ranges::find(point.values, key, &std::pair<std::string, Cell>::first);
  return value == point.values.end() ? "-" : text_of(value->second);
}

report::Html table_of_points(const Results& results) {
  report::Table table{{{"point", true},
                       {"best " + results.by, true},
                       {"at step", true},
                       {"last", true},
                       {"tokens/s", true},
                       {"time", true},
                       {"state"}},
                      {}};
  const bool skipped = any_skipped(results);
  if (skipped) table.columns.push_back({"skipped", true});
  for (const std::string& key : results.keys) table.columns.push_back({key, true});
  const std::size_t best = winner(comparable(results));
  for (const PointResult& result : results.points) {
    const PointStatus& point = result.status;
    report::Row row{{{std::to_string(point.number), link_of(point)},
                     has_result(result) ? fmt::format("{:.5f}", result.best) : "-",
                     result.curve.empty() ? "-" : std::to_string(result.best_step),
                     std::isfinite(result.last) ? fmt::format("{:.5f}", result.last) : "-",
                     number_or_dash(result.tokens_per_second),
                     metrics::human_duration(result.seconds),
                     std::string(name_of(point.state))}};
    if (skipped) row.cells.emplace_back(std::to_string(point.skipped));
    for (const std::string& key : results.keys) row.cells.emplace_back(cell_text(point, key));
    row.strong = table.rows.size() == best && has_result(result);
    row.faint = point.state == State::failed || point.state == State::missing || point.skipped > 0;
    table.rows.push_back(std::move(row));
  }
  return report::table(table) + (skipped ? report::paragraph(kSkippedNote) : report::Html());
}

report::Html parallel(const Results& results) {
  report::ParallelCoordinates chart;
  chart.title = "Settings and " + results.by;
  for (const PointResult& result : results.points)
    chart.members.push_back(
        {fmt::format("{}: {}", result.status.number, short_settings(result.status)), {}});
  for (const std::string& key : results.keys) {
    KeyAxis axis = axis_of(results, key);
    axis.dimension.name = config::leaf_of(key);
    chart.dimensions.push_back(axis.dimension);
    for (std::size_t i = 0; i < axis.values.size(); ++i)
      chart.members[i].values.push_back(axis.values[i]);
  }
  chart.dimensions.push_back({"best " + results.by});
  const std::vector<double> bests = comparable(results);
  for (std::size_t i = 0; i < bests.size(); ++i) chart.members[i].values.push_back(bests[i]);
  return report::parallel_coordinates(chart) + report::paragraph(left_out_note(results));
}

/// The two keys of the heat map; fewer where the sweep varies fewer.
std::vector<std::string> heat_keys(const Results& results, const std::vector<std::string>& wanted) {
  for (const std::string& key : wanted)
    require(std::ranges::find(results.keys, key) != results.keys.end(), ExitCode::usage,
            "the sweep does not vary {}{}", key, did_you_mean(key, results.keys));
  if (!wanted.empty()) return wanted;
  std::vector<std::string> keys;
  for (const std::string& key : results.keys)
    if (keys.size() < 2 && groups_of(axis_of(results, key)).labels.size() > 1) keys.push_back(key);
  return keys;
}

report::Html heat(const Results& results, const std::string& x, const std::string& y) {
  const Groups columns = groups_of(axis_of(results, x)), rows = groups_of(axis_of(results, y));
  report::HeatMap chart;
  chart.title = "Best " + results.by;
  chart.x_name = x, chart.y_name = y;
  chart.x_labels = columns.labels, chart.y_labels = rows.labels;
  chart.values.assign(columns.labels.size() * rows.labels.size(),
                      std::numeric_limits<double>::quiet_NaN());
  const std::vector<double> bests = comparable(results);
  for (std::size_t i = 0; i < bests.size(); ++i) {
    if (columns.of_point[i] < 0 || rows.of_point[i] < 0) continue;
    double& cell = chart.values[static_cast<std::size_t>(rows.of_point[i]) * columns.labels.size() +
                                static_cast<std::size_t>(columns.of_point[i])];
    if (std::isfinite(bests[i]) && !(cell <= bests[i])) cell = bests[i];
  }
  return report::heat_map(chart) +
         report::paragraph(
             fmt::format("Each cell has the best of its points. {}", left_out_note(results)));
}

report::Html table_of_rest(const Results& results) {
  report::Table table{
      {{"point", true}, {"state"}, {"exit code", true}, {"step", true}, {"settings"}, {"reason"}},
      {}};
  for (const PointResult& result : results.points) {
    const PointStatus& point = result.status;
    if (point.state == State::done) continue;
    table.rows.push_back({{{std::to_string(point.number), link_of(point)},
                           std::string(name_of(point.state)),
                           point.code ? std::to_string(*point.code) : "-",
                           fmt::format("{}/{}", point.step, point.steps),
                           short_settings(point),
                           point.reason}});
  }
  return table.rows.empty() ? report::paragraph("Every point is done.") : report::table(table);
}

}  // namespace

std::string results_page(const Results& results, const PageText& text) {
  report::Page page(text.title, fmt::format("Sweep of {} points, compared by {}",
                                            results.points.size(), results.by));
  const std::vector<std::string> keys = heat_keys(results, text.heat_keys);
  if (results.points.empty()) return page.html();
  page.section("Result", figures_of(results));
  page.section("Curves", curves_of(results));
  page.section("Points", table_of_points(results));
  if (!results.keys.empty()) page.section("Parallel coordinates", parallel(results));
  if (keys.size() == 2) page.section("Heat map", heat(results, keys[0], keys[1]));
  page.section("Not done", table_of_rest(results));
  report::Html files;
  if (!text.sweep_file.empty())
    files += report::folded("The sweep", report::preformatted(text.sweep_file));
  if (!text.job_file.empty())
    files += report::folded("The job", report::preformatted(text.job_file));
  if (!files.text.empty()) page.section("Files", files);
  return page.html();
}

}  // namespace tessera::sweep
