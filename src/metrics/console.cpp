// SPDX-License-Identifier: Apache-2.0
#include "tessera/metrics/console.hpp"

#include <fmt/format.h>

#include <cmath>
#include <ostream>
#include <utility>
#include <vector>

#include "tessera/metrics/human.hpp"

namespace tessera::metrics {
namespace {

enum Color : int {
  plain = 0,
  bold = 1,
  faint = 90,
  red = 31,
  green = 32,
  yellow = 33,
  blue = 34,
  cyan = 36,
  magenta = 35
};

std::string painted(const std::string& text, Color color, bool wanted) {
  return wanted ? fmt::format("\x1b[{}m{}\x1b[0m", static_cast<int>(color), text) : text;
}

/// Fixed point in `width` characters: fewer decimals where that is too narrow, and an exponent
/// where even the integer part is.
std::string number(double value, int width, int decimals) {
  if (!std::isfinite(value)) return fmt::format("{:>{}}", value, width);
  for (; decimals >= 1; --decimals)
    if (std::string text = fmt::format("{:>{}.{}f}", value, width, decimals);
        static_cast<int>(text.size()) <= width)
      return text;
  return fmt::format("{:>{}.{}e}", value, width, 1);
}

std::string percent(double fraction) {
  return std::isfinite(fraction) ? fmt::format("{:4.1f}%", 100 * fraction) : "   - ";
}

std::string peak_line(const Peak& peak) {
  if (!(peak.flops > 0))
    return fmt::format("MFU is not known: {}",
                       peak.source.empty() ? "no peak for this device" : peak.source);
  return fmt::format("MFU peak: {} a device ({})", human_flops(peak.flops), peak.source);
}

/// One figure of a line. Its width is the same in every line, so that all lines omit the same ones.
struct Part {
  std::string text;
  Color color;
  int rank;  ///< parts of a higher one are omitted first; 0: never
  int width = 0;
};

std::vector<Part> parts_of(const StepRecord& record, double eta_seconds, const LineStyle& style) {
  const auto digits = fmt::formatted_size("{}", style.last_step);
  const Color loss_color = std::isfinite(record.loss) ? green : red;
  const Color norm_color = std::isfinite(record.grad_norm) ? yellow : red;
  std::vector<Part> parts{
      {fmt::format("step {:>{}}/{}", record.step, digits, style.last_step), bold, 0},
      {"loss " + number(record.loss, 8, 5), loss_color, 0},
      {"grad_norm " + number(record.grad_norm, 7, 4), norm_color, 1},
      {fmt::format("lr {:.2e}", record.lr), plain, 2},
      {fmt::format("{:>5} tok/s", human_count(record.tokens_per_second)), blue, 0},
      {fmt::format("{:>5} tok/s/device", human_count(record.tps)), blue, style.devices > 1 ? 6 : 7},
      {"mfu " + percent(record.mfu), magenta, 3},
      {fmt::format("mem {:>8}", human_bytes(record.memory_bytes)), cyan, 5},
      {fmt::format("eta {:<5}", human_duration(eta_seconds)), faint, 4}};
  for (Part& part : parts) part.width = static_cast<int>(part.text.size());
  return parts;
}

/// Omits what is not wanted on one device, and what does not fit.
void fit(std::vector<Part>& parts, int columns) {
  constexpr int kNotWanted = 7;
  for (int rank = kNotWanted; rank > 0; --rank) {
    int width = -2;
    for (const Part& part : parts) width += part.width + 2;
    if (rank < kNotWanted && width <= columns) return;
    std::erase_if(parts, [&](const Part& part) { return part.rank == rank; });
  }
}

}  // namespace

std::string step_line(const StepRecord& record, double eta_seconds, const LineStyle& style) {
  std::vector<Part> parts = parts_of(record, eta_seconds, style);
  fit(parts, style.columns);
  std::string line;
  for (const Part& part : parts)
    line += (line.empty() ? "" : "  ") +
            (part.color == plain ? part.text : painted(part.text, part.color, style.color));
  if (!style.color) line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

Console::Console(std::ostream& out, Terminal terminal, std::int64_t first_step,
                 std::int64_t last_step, Peak peak, int devices)
    : out_(out),
      terminal_(terminal),
      style_{last_step, devices, terminal.interactive ? terminal.columns - 1 : 100, terminal.color},
      peak_(std::move(peak)),
      progress_(out, terminal, "training", last_step, first_step - 1) {}

Console::~Console() { finish(); }

void Console::step(const StepRecord& record, double eta_seconds, bool print_line) {
  progress_.update(record.step);
  if (!std::exchange(peak_named_, true)) {
    print(painted(peak_line(peak_), faint, terminal_.color));
    const std::string memory = human_bytes(record.memory_bytes);
    print(painted(fmt::format("memory of the largest rank after this step: {}", memory), faint,
                  terminal_.color));
  }
  if (print_line) print(step_line(record, eta_seconds, style_));
}

void Console::note(std::string_view line) { print(line); }

void Console::finish() { progress_.finish(); }

void Console::print(std::string_view line) {
  progress_.erase();
  out_ << line << '\n' << std::flush;
  progress_.draw();
}

}  // namespace tessera::metrics
