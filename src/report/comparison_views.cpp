// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "comparison_tables.hpp"
#include "run_charts.hpp"
#include "tessera/base/error.hpp"
#include "tessera/report/comparison.hpp"

namespace tessera::report {
namespace {

std::string as_text(const Table& table) {
  std::vector<std::size_t> widths;
  for (const Column& column : table.columns) widths.push_back(column.name.size());
  for (const Row& row : table.rows)
    for (std::size_t i = 0; i < row.cells.size(); ++i)
      widths[i] = std::max(widths[i], row.cells[i].text.size());
  const auto line = [&](const auto& cell) {
    std::string text;
    for (std::size_t i = 0; i < widths.size(); ++i)
      text += table.columns[i].numeric ? fmt::format("{:>{}}  ", cell(i), widths[i])
                                       : fmt::format("{:<{}}  ", cell(i), widths[i]);
    text.resize(text.find_last_not_of(' ') + 1);
    return text + "\n";
  };
  std::string text = line([&](std::size_t i) { return table.columns[i].name; });
  for (const Row& row : table.rows) text += line([&](std::size_t i) { return row.cells[i].text; });
  return text;
}

Html curves_of(const std::vector<TrainingRun>& runs, const ColumnChart& what) {
  const std::vector<std::string> names = names_of(runs);
  std::vector<Series> series;
  for (std::size_t i = 0; i < runs.size(); ++i)
    series.push_back({names[i], column(runs[i], what.column)});
  return drawn(what, std::move(series));
}

/// |loss - loss of the first run| at the steps that both have.
Html distances(const std::vector<TrainingRun>& runs) {
  std::map<double, double> first;
  for (const Point& p : column(runs[0], "loss")) first[p.x] = p.y;
  const std::vector<std::string> names = names_of(runs);
  std::vector<Series> series;
  for (std::size_t i = 1; i < runs.size(); ++i) {
    series.push_back({names[i], {}});
    for (const Point& p : column(runs[i], "loss"))
      if (const auto at = first.find(p.x); at != first.end())
        series.back().points.push_back({p.x, std::abs(p.y - at->second)});
  }
  return line_chart({.title = "Distance of the loss from that of " + names[0],
                     .series = std::move(series),
                     .log_y = true});
}

void link_names(Table& table, const std::vector<TrainingRun>& runs,
                const std::filesystem::path& page) {
  namespace fs = std::filesystem;
  for (std::size_t i = 0; i < runs.size(); ++i)
    if (const fs::path own = fs::absolute(runs[i].folder) / "index.html"; fs::exists(own))
      table.rows[i].cells[0].link =
          own.lexically_relative(fs::absolute(page).parent_path()).string();
}

}  // namespace

std::string comparison_text(const std::vector<TrainingRun>& runs, double tolerance) {
  TESSERA_EXPECT(runs.size() >= 2, "{} runs", runs.size());
  std::string text = as_text(results_table(runs)) + "\n";
  const Table settings = settings_table(runs);
  const std::vector<std::string> unread = unread_settings(runs);
  if (!settings.rows.empty())
    text += as_text(settings);
  else if (unread.empty())
    text += "no setting differs\n";
  for (const std::string& line : unread) text += line + "\n";
  return text + "\n" + as_text(divergence_table(runs, tolerance));
}

std::string comparison_page(const std::vector<TrainingRun>& runs, double tolerance,
                            const std::filesystem::path& file) {
  TESSERA_EXPECT(runs.size() >= 2, "{} runs", runs.size());
  Table results = results_table(runs);
  link_names(results, runs, file);
  Page page(fmt::format("{} runs compared", runs.size()));
  page.section("Results", table(results));
  page.section("Curves",
               grid({curves_of(runs, loss_chart()), distances(runs), curves_of(runs, rate_chart()),
                     curves_of(runs, norm_chart()), curves_of(runs, speed_chart())}));
  const Table settings = settings_table(runs);
  Html different = settings.rows.empty() ? paragraph("No setting differs.") : table(settings);
  for (const std::string& line : unread_settings(runs)) different += paragraph(line);
  page.section("Settings that differ", different);
  page.section("Divergence", table(divergence_table(runs, tolerance)));
  return page.html();
}

}  // namespace tessera::report
