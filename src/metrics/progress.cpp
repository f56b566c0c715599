// SPDX-License-Identifier: Apache-2.0
#include "tessera/metrics/progress.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <ostream>
#include <utility>

#include "tessera/metrics/human.hpp"
#include "tessera/metrics/meter.hpp"

namespace tessera::metrics {
namespace {

constexpr double redraw_seconds = 0.1;
constexpr int widest_bar = 40;
constexpr int narrowest_bar = 8;

std::string repeat(std::string_view text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

/// `cells` characters wide; with Unicode in steps of half a cell.
std::string bar(double fraction, int cells, const Terminal& terminal) {
  const int halves = static_cast<int>(fraction * 2 * cells);
  const int full = halves / 2;
  if (!terminal.unicode) return fmt::format("[{}{}]", repeat("#", full), repeat("-", cells - full));
  const int half = halves % 2;
  const std::string done = repeat("━", full) + repeat("╸", half);
  const std::string rest = repeat(terminal.color ? "━" : "─", cells - full - half);
  return terminal.color ? fmt::format("\x1b[36m{}\x1b[90m{}\x1b[0m", done, rest) : done + rest;
}

}  // namespace

Progress::Progress(std::ostream& out, Terminal terminal, std::string label, std::int64_t total,
                   std::int64_t start)
    : Progress(out, terminal, std::move(label), total, start, &monotonic_seconds) {}

Progress::Progress(std::ostream& out, Terminal terminal, std::string label, std::int64_t total,
                   std::int64_t start, Clock clock)
    : out_(out),
      terminal_(terminal),
      label_(std::move(label)),
      total_(std::max<std::int64_t>(1, total)),
      start_(start),
      done_(start),
      clock_(std::move(clock)),
      began_(clock_()),
      drawn_at_(began_ - redraw_seconds) {}

Progress::~Progress() { finish(); }

void Progress::update(std::int64_t done) {
  done_ = std::clamp<std::int64_t>(done, 0, total_);
  if (terminal_.interactive && clock_() - drawn_at_ >= redraw_seconds) draw();
}

void Progress::draw() {
  if (!terminal_.interactive || finished_) return;
  drawn_at_ = clock_();
  visible_ = true;
  // The cursor goes back to the first column: a line that someone else prints then starts there.
  out_ << "\r\x1b[2K" << line() << '\r' << std::flush;
}

void Progress::erase() {
  if (std::exchange(visible_, false)) out_ << "\r\x1b[2K" << std::flush;
}

void Progress::finish() {
  erase();
  finished_ = true;
}

double Progress::eta_seconds() const {
  if (done_ <= start_) return std::numeric_limits<double>::quiet_NaN();
  return (clock_() - began_) * static_cast<double>(total_ - done_) /
         static_cast<double>(done_ - start_);
}

std::string Progress::line() const {
  const double fraction = static_cast<double>(done_) / static_cast<double>(total_);
  const double seconds = clock_() - began_;
  const double speed = done_ > start_ && seconds > 0 ? static_cast<double>(done_ - start_) / seconds
                                                     : std::numeric_limits<double>::quiet_NaN();
  const std::string figures = fmt::format(
      "{:3.0f}%  {}/{}  {}/s  eta {}", 100 * fraction, human_count(static_cast<double>(done_)),
      human_count(static_cast<double>(total_)), human_count(speed), human_duration(eta_seconds()));
  const int room = terminal_.columns - static_cast<int>(label_.size() + figures.size()) - 6;
  if (room < narrowest_bar)
    return figures.substr(0, static_cast<std::size_t>(std::max(0, terminal_.columns - 1)));
  return fmt::format("{} {} {}", label_, bar(fraction, std::min(room, widest_bar), terminal_),
                     figures);
}

}  // namespace tessera::metrics
