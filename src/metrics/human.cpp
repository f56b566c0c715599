// SPDX-License-Identifier: Apache-2.0
#include "tessera/metrics/human.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string_view>

namespace tessera::metrics {
namespace {

/// Three significant digits of a value under 999.5.
std::string three_digits(double value) {
  if (value < 9.995) return fmt::format("{:.2f}", value);
  if (value < 99.95) return fmt::format("{:.1f}", value);
  return fmt::format("{:.0f}", value);
}

template <std::size_t n>
std::string scaled(double value, double base, const std::array<std::string_view, n>& units) {
  std::size_t unit = 0;
  for (; unit + 1 < n && std::abs(value) >= 999.5; ++unit) value /= base;
  const bool whole = unit == 0 && value == std::floor(value);
  const std::string digits = whole || std::abs(value) >= 999.5
                                 ? fmt::format("{:.0f}", std::abs(value))
                                 : three_digits(std::abs(value));
  return fmt::format("{}{}{}", value < 0 ? "-" : "", digits, units[unit]);
}

}  // namespace

std::string human_bytes(std::int64_t bytes) {
  return scaled(static_cast<double>(bytes), 1024,
                std::array<std::string_view, 6>{" B", " KiB", " MiB", " GiB", " TiB", " PiB"});
}

std::string human_count(double count) {
  if (!std::isfinite(count)) return "-";
  return scaled(count, 1000, std::array<std::string_view, 5>{"", "k", "M", "B", "T"});
}

std::string human_flops(double flops) {
  if (!std::isfinite(flops)) return "-";
  return scaled(flops, 1000,
                std::array<std::string_view, 7>{" FLOP/s", " kFLOP/s", " MFLOP/s", " GFLOP/s",
                                                " TFLOP/s", " PFLOP/s", " EFLOP/s"});
}

std::string human_duration(double seconds) {
  constexpr double century = 100 * 365.25 * 86400;
  if (!(seconds >= 0 && seconds < century)) return "-";
  if (seconds < 0.995) return fmt::format("{:.2f}s", seconds);
  if (seconds < 9.95) return fmt::format("{:.1f}s", seconds);
  const auto s = std::llround(seconds);
  if (s < 60) return fmt::format("{}s", s);
  if (s < 3600) return fmt::format("{}m{:02}s", s / 60, s % 60);
  const auto m = (s + 30) / 60;
  if (m < 24 * 60) return fmt::format("{}h{:02}m", m / 60, m % 60);
  const auto h = (m + 30) / 60;
  return fmt::format("{}d{:02}h", h / 24, h % 24);
}

}  // namespace tessera::metrics
