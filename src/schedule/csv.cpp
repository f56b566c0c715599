// SPDX-License-Identifier: Apache-2.0
#include "tessera/schedule/csv.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <optional>
#include <span>
#include <string_view>

#include "tessera/base/error.hpp"
#include "tessera/base/utf8.hpp"

namespace tessera::schedule {
namespace {

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::string trimmed(const std::string& text) {
  const auto begin = text.find_first_not_of(" \t\r\"");
  return begin == text.npos ? "" : text.substr(begin, text.find_last_not_of(" \t\r\"") + 1 - begin);
}

constexpr std::string_view kTransfers[] = {"SEND_F",  "RECV_F",  "SEND_B",     "RECV_B",
                                           "UNSHARD", "RESHARD", "REDUCE_GRAD"};
constexpr std::string_view kPairEnd = ")OVERLAP_F_B";
constexpr std::size_t kCellShown = 40;

/// Takes the digits at the front of `text`.
std::string_view take_digits(std::string_view& text) {
  const std::string_view digits = text.substr(0, text.find_first_not_of("0123456789"));
  text.remove_prefix(digits.size());
  return digits;
}

std::optional<int> number(std::string_view digits) {
  int value = 0;
  if (digits.empty() || digits.size() > 6) return std::nullopt;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}

std::optional<ActionKind> kind_of(char letter) {
  switch (letter) {
    case 'F':
      return ActionKind::forward;
    case 'I':
      return ActionKind::input_gradient;
    case 'W':
      return ActionKind::weight_gradient;
    case 'B':
      return ActionKind::backward;
    default:
      return std::nullopt;
  }
}

/// "0F12": a stage, a letter, a microbatch.
std::optional<Action> computation(std::string_view cell) {
  const auto stage = number(take_digits(cell));
  const auto kind = cell.empty() ? std::nullopt : kind_of(cell.front());
  if (!stage || !kind) return std::nullopt;
  cell.remove_prefix(1);
  const auto microbatch = number(take_digits(cell));
  return microbatch && cell.empty()
             ? std::optional(Action{*kind, StageIndex(*stage), MicrobatchIndex(*microbatch)})
             : std::nullopt;
}

/// "0SEND_F12", "3UNSHARD".
bool is_transfer(std::string_view cell) {
  if (take_digits(cell).empty()) return false;
  for (const std::string_view name : kTransfers)
    if (cell.starts_with(name))
      return cell.remove_prefix(name.size()), take_digits(cell), cell.empty();
  return false;
}

class Reader {
 public:
  explicit Reader(std::filesystem::path file) : file_(std::move(file)) {}

  Table read() {
    std::ifstream in(file_);
    std::error_code ignored;
    const bool is_folder = std::filesystem::is_directory(file_, ignored);
    require(in.good() && !is_folder, ExitCode::data,
            "cannot read the schedule {} ({}); check the path", file_.string(),
            is_folder ? "it is a folder" : std::strerror(errno));
    for (std::string line; std::getline(in, line);) {
      if (++row_ == 1) line = without_byte_order_mark(line);
      if (!trimmed(line).empty()) take_row(line);
    }
    require(!lists_.empty(), ExitCode::usage,
            "{} holds no actions; write one row for each rank, such as 0F0,0F1,0B0,0B1",
            file_.string());
    return {std::move(lists_), map(), microbatches_};
  }

 private:
  void take_row(const std::string& line) {
    lists_.push_back({});
    column_ = 0;
    for (const std::string& cell : split(line, ',')) {
      ++column_;
      take_cell(trimmed(cell));
    }
    require(!lists_.back().empty(), ExitCode::usage,
            "{}:{}: the row has no action; every rank needs a stage", file_.string(), row_);
  }

  void take_cell(const std::string& cell) {
    if (!cell.starts_with('(') || !cell.ends_with(kPairEnd)) return take_single(cell);
    const std::size_t first = lists_.back().size();
    for (const std::string& part : split(cell.substr(1, cell.size() - 1 - kPairEnd.size()), ';'))
      take_single(trimmed(part));
    const std::span pair = std::span(lists_.back()).subspan(first);
    if (pair.size() == 2 && pair[0].kind == ActionKind::forward && is_backward(pair[1].kind))
      pair[0].overlaps_next = pair[0].stage != pair[1].stage;
  }

  void take_single(const std::string& cell) {
    if (cell.empty()) return;
    if (is_transfer(cell))
      wrong(cell,
            "is not a computation; remove transfers and gathers, which Tessera adds itself "
            "(PyTorch: format "
            "compute_only)");
    const auto action = computation(cell);
    if (!action)
      wrong(cell, "is not an action; write stage, F, I, W or B, and microbatch, such as 0F0");
    take(*action, cell);
  }

  void take(const Action& action, const std::string& cell) {
    const PipelineRank rank(lists_.size() - 1);
    const auto [place, fresh] = rank_of_.try_emplace(action.stage, rank);
    if (!fresh && place->second != rank)
      wrong(cell, fmt::format("has a stage that is also in row {}; each stage belongs to one rank",
                              place->second + 1));
    microbatches_ = std::max(microbatches_, action.microbatch.value() + 1);
    lists_.back().push_back(action);
  }

  [[noreturn]] void wrong(const std::string& cell, const std::string& why) const {
    fail(ExitCode::usage, "{}:{}:{}: \"{}{}\" {}", file_.string(), row_, column_,
         cell.substr(0, kCellShown), cell.size() > kCellShown ? "..." : "", why);
  }

  StageMap map() const {
    std::vector<int> ranks;
    for (const auto& [stage, rank] : rank_of_) {
      require(stage.position() == ranks.size(), ExitCode::usage,
              "{}: stage {} has no action, and stage {} has; number "
              "stages from 0 without gaps",
              file_.string(), ranks.size(), stage);
      ranks.push_back(rank.value());
    }
    return StageMap::of(ranks);
  }

  std::filesystem::path file_;
  int row_ = 0, column_ = 0;
  ActionLists lists_;
  std::map<StageIndex, PipelineRank> rank_of_;
  int microbatches_ = 0;
};

std::string row_of(const std::vector<TimedAction>& rank, double begin) {
  std::string row;
  std::size_t column = 0;
  for (auto timed = rank.begin(); timed != rank.end(); ++timed) {
    const auto at = static_cast<std::size_t>(std::lround(timed->begin - begin));
    for (; column < at; ++column) row += ',';
    if (!timed->action.overlaps_next) {
      row += to_string(timed->action);
      continue;
    }
    const std::string forward = to_string(timed->action);
    row += fmt::format("({};{}{}", forward, to_string((++timed)->action), kPairEnd);
  }
  return row + "\n";
}

}  // namespace

Table read_csv(const std::filesystem::path& file) { return Reader(file).read(); }

std::string to_csv(const Timeline& unit_timeline) {
  std::string csv;
  const double begin = unit_timeline.begin();
  for (const auto& rank : unit_timeline.ranks) csv += row_of(rank, begin);
  return csv;
}

}  // namespace tessera::schedule
