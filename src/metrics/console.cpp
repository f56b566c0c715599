#include "tessera/metrics/console.hpp"

#include <fmt/format.h>

#include <cmath>
#include <ostream>
#include <utility>

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

/// Fixed point in `width` characters, or with an exponent where that is too narrow.
std::string number(double value, int width, int decimals) {
  if (!std::isfinite(value)) return fmt::format("{:>{}}", value, width);
  std::string text = fmt::format("{:>{}.{}f}", value, width, decimals);
  return static_cast<int>(text.size()) <= width ? text : fmt::format("{:>{}.{}e}", value, width, 1);
}

std::string percent(double fraction) {
  return std::isfinite(fraction) ? fmt::format("{:4.1f}%", 100 * fraction) : "   - ";
}

std::string peak_line(const Peak& peak) {
  if (!(peak.flops > 0))
    return fmt::format("MFU is not known: {}", peak.source.empty() ? "no peak for this device" : peak.source);
  return fmt::format("MFU is against {} a device ({})", human_flops(peak.flops), peak.source);
}

}  // namespace

std::string step_line(const StepRecord& record, std::int64_t last_step, double eta_seconds, bool color) {
  const auto digits = fmt::formatted_size("{}", last_step);
  const auto paint = [color](std::string text, Color with) { return painted(text, with, color); };
  const Color loss_color = std::isfinite(record.loss) ? green : red;
  const Color norm_color = std::isfinite(record.grad_norm) ? yellow : red;
  std::string line = paint(fmt::format("step {:>{}}/{}", record.step, digits, last_step), bold);
  line += "  " + paint("loss " + number(record.loss, 8, 5), loss_color);
  line += "  " + paint("grad_norm " + number(record.grad_norm, 8, 4), norm_color);
  line += fmt::format("  lr {:.3e}", record.lr);
  line += "  " + paint(fmt::format("{:>5} tok/s  {:>5} tok/s/device", human_count(record.tokens_per_second),
                                   human_count(record.tps)),
                       blue);
  line += "  " + paint("mfu " + percent(record.mfu), magenta);
  line += "  " + paint(fmt::format("mem {:>8}", human_bytes(record.memory_bytes)), cyan);
  return line + "  " + paint(fmt::format("eta {}", human_duration(eta_seconds)), faint);
}

Console::Console(std::ostream& out, Terminal terminal, std::int64_t first_step, std::int64_t last_step, Peak peak)
    : out_(out),
      terminal_(terminal),
      last_step_(last_step),
      peak_(std::move(peak)),
      progress_(out, terminal, "training", last_step, first_step - 1) {}

Console::~Console() { finish(); }

void Console::step(const StepRecord& record, double eta_seconds, bool print_line) {
  progress_.update(record.step);
  if (!std::exchange(peak_named_, true)) print(painted(peak_line(peak_), faint, terminal_.color));
  if (print_line) print(step_line(record, last_step_, eta_seconds, terminal_.color));
}

void Console::note(std::string_view line) { print(line); }

void Console::finish() { progress_.finish(); }

void Console::print(std::string_view line) {
  progress_.erase();
  out_ << line << '\n' << std::flush;
  progress_.draw();
}

}  // namespace tessera::metrics
