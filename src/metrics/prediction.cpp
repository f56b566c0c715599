// SPDX-License-Identifier: Apache-2.0
#include "tessera/metrics/prediction.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tessera/metrics/human.hpp"

namespace tessera::metrics {
namespace {

double part_of(const Times& parts, std::string_view name) {
  const auto found = std::ranges::find(parts, name, &Times::value_type::first);
  return found == parts.end() ? 0 : found->second;
}

double waiting_in(const Times& parts) {
  double sum = 0;
  for (const auto& [name, seconds] : parts)
    if (name.starts_with(kWaitingIn)) sum += seconds;
  return sum;
}

std::string milliseconds(double seconds) { return fmt::format("{:.4g} ms", seconds * 1e3); }

PredictionRow row_of(std::string_view name, double predicted, double measured,
                     std::string (*text)(double)) {
  return {std::string(name), text(predicted), text(measured),
          predicted > 0 && measured > 0 ? fmt::format("{:+.0f} %", 100 * (predicted / measured - 1))
                                        : ""};
}

std::string bytes(double count) { return human_bytes(static_cast<std::int64_t>(count)); }

}  // namespace

std::vector<PredictionRow> overview(const Prediction& of) {
  const RunFigures &predicted = of.predicted, &measured = of.measured;
  std::vector<PredictionRow> rows{
      row_of("step", predicted.step_seconds, measured.step_seconds, &milliseconds)};
  if (measured.memory_bytes > 0)
    rows.push_back(row_of("memory", static_cast<double>(predicted.memory_bytes),
                          static_cast<double>(measured.memory_bytes), &bytes));
  rows.push_back(
      row_of("waiting", waiting_in(predicted.parts), waiting_in(measured.parts), &milliseconds));
  return rows;
}

std::vector<PredictionRow> part_rows(const Prediction& of) {
  std::vector<PredictionRow> rows;
  const auto add = [&](const std::string& name) {
    if (std::ranges::find(rows, name, &PredictionRow::name) == rows.end())
      rows.push_back(row_of(name, part_of(of.predicted.parts, name),
                            part_of(of.measured.parts, name), &milliseconds));
  };
  for (const Times* parts : {&of.predicted.parts, &of.measured.parts})
    for (const auto& [name, seconds] : *parts) add(name);
  return rows;
}

std::string part_off_most(const Prediction& of) {
  std::string worst;
  double most = 0;
  for (const Times* parts : {&of.predicted.parts, &of.measured.parts})
    for (const auto& [name, seconds] : *parts) {
      const double off =
          std::abs(part_of(of.predicted.parts, name) - part_of(of.measured.parts, name));
      if (off <= most) continue;
      most = off;
      worst = name;
    }
  return worst;
}

std::string text_of(const Prediction& of) {
  std::string text = fmt::format("  predicted for {}, and measured:\n", of.of);
  for (const PredictionRow& row : overview(of))
    text += fmt::format("    {:<13}{:>12} {:>11}{:>9}\n", row.name, row.predicted, row.measured,
                        row.difference);
  const std::string worst = part_off_most(of);
  if (worst.empty()) return text;
  return text + fmt::format("    off most: {}, {} of a step predicted, {} measured\n", worst,
                            milliseconds(part_of(of.predicted.parts, worst)),
                            milliseconds(part_of(of.measured.parts, worst)));
}

}  // namespace tessera::metrics
