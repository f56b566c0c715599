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

std::string compared(std::string_view name, double predicted, double measured,
                     const std::string& as_predicted, const std::string& as_measured) {
  const std::string error = predicted > 0 && measured > 0
                                ? fmt::format("{:+.0f} %", 100 * (predicted / measured - 1))
                                : "";
  return fmt::format("    {:<13}{:>12}{:>12}{:>9}\n", name, as_predicted, as_measured, error);
}

/// The part that adds most to the error of the step, in seconds.
std::string worst_part(const RunFigures& predicted, const RunFigures& measured) {
  const std::string* worst = nullptr;
  double most = 0;
  const auto off = [&](const std::string& name) {
    return std::abs(part_of(predicted.parts, name) - part_of(measured.parts, name));
  };
  for (const Times* parts : {&predicted.parts, &measured.parts})
    for (const auto& [name, seconds] : *parts)
      if (off(name) > most) {
        most = off(name);
        worst = &name;
      }
  if (!worst) return "";
  return fmt::format("    off most: {}, {} of a step predicted, {} measured\n", *worst,
                     milliseconds(part_of(predicted.parts, *worst)),
                     milliseconds(part_of(measured.parts, *worst)));
}

}  // namespace

std::string predicted_and_measured(const RunFigures& predicted, const RunFigures& measured,
                                   const std::string& of) {
  const auto times = [](std::string_view name, double expected, double seen) {
    return compared(name, expected, seen, milliseconds(expected), milliseconds(seen));
  };
  std::string text = fmt::format("  predicted for {}, and measured:\n", of);
  text += times("step", predicted.step_seconds, measured.step_seconds);
  if (measured.memory_bytes > 0)
    text += compared("memory", static_cast<double>(predicted.memory_bytes),
                     static_cast<double>(measured.memory_bytes),
                     human_bytes(predicted.memory_bytes), human_bytes(measured.memory_bytes));
  text += times("waiting", waiting_in(predicted.parts), waiting_in(measured.parts));
  return text + worst_part(predicted, measured);
}

}  // namespace tessera::metrics
