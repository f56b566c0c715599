// SPDX-License-Identifier: Apache-2.0
#include "tessera/metrics/jsonl_sink.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "append_file.hpp"
#include "columns.hpp"
#include "run_files.hpp"
#include "tessera/base/atomic_file.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/json.hpp"
#include "tessera/base/log.hpp"

namespace tessera::metrics {
namespace {

using nlohmann::json;

/// 17 significant digits give back every double; a bare "-0" would read as an integer, which has no
/// sign of zero.
std::string number(double value) {
  if (!std::isfinite(value)) return "null";
  return value == 0 && std::signbit(value) ? "-0.0" : fmt::format("{:.17g}", value);
}

std::string quoted(const std::string& text) { return json_text(json(text)); }

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// Takes the numbers of one flat object as they come: the cost of a line is proportional to its
/// length, whatever it contains.
class RecordReader final : public nlohmann::json_sax<json> {
 public:
  /// Empty where the line is not an object with a step from 1.
  std::optional<StepRecord> read(std::string_view line) {
    nlohmann::json_sax<json>* events = this;
    if (!json::sax_parse(line, events) || !has_step_ || record_.step < 1) return std::nullopt;
    return std::move(record_);
  }

 private:
  bool null() override { return take(nan, std::nullopt); }
  bool number_integer(std::int64_t value) override {
    return take(static_cast<double>(value), value);
  }
  bool number_unsigned(std::uint64_t value) override {
    constexpr std::uint64_t most = std::numeric_limits<std::int64_t>::max();
    return take(static_cast<double>(value), static_cast<std::int64_t>(std::min(value, most)));
  }
  bool number_float(double value, const std::string&) override { return take(value, std::nullopt); }
  bool boolean(bool) override { return may_be_no_number(); }
  bool string(std::string&) override { return may_be_no_number(); }
  bool binary(json::binary_t&) override { return depth_ > 0; }
  bool start_object(std::size_t) override { return ++depth_, true; }
  bool end_object() override { return --depth_, true; }
  bool start_array(std::size_t) override { return depth_++ > 0; }
  bool end_array() override { return --depth_, true; }
  bool key(std::string& name) override { return name_.swap(name), true; }
  bool parse_error(std::size_t, const std::string&, const json::exception&) override {
    return false;
  }

  bool may_be_no_number() const {
    return depth_ > 1 || (depth_ == 1 && std::ranges::find(kColumns, std::string_view(name_),
                                                           &Column::name) == kColumns.end());
  }

  /// False, which ends the reading, outside of an object. What is nested in the record is passed
  /// over.
  bool take(double real, std::optional<std::int64_t> whole) {
    if (depth_ != 1) return depth_ > 1;
    const auto column = std::ranges::find(kColumns, std::string_view(name_), &Column::name);
    if (column == kColumns.end()) return record_.extra.emplace_back(name_, real), true;
    if (column->real != nullptr) record_.*column->real = real;
    if (column->whole != nullptr && whole) record_.*column->whole = *whole;
    has_step_ = has_step_ || (column->whole == &StepRecord::step && whole);
    return true;
  }

  StepRecord record_;
  std::string name_;
  int depth_ = 0;
  bool has_step_ = false;
};

std::optional<StepRecord> parse_record(std::string_view line) { return RecordReader().read(line); }

/// Copies the lines that stay to `out`, returns the last step; `dropped` counts the others.
std::int64_t copy_kept_lines(std::ifstream& in, AtomicFile& out, std::int64_t resume_step,
                             std::int64_t& dropped) {
  std::int64_t last_step = 0;
  std::string line;
  while (std::getline(in, line)) {
    const auto record = parse_record(line);
    const bool keep = record && record->step > last_step && record->step <= resume_step;
    dropped += keep ? 0 : 1;
    if (!keep) continue;
    last_step = record->step;
    out.append(line + '\n');
  }
  return last_step;
}

/// Makes `file` end at `resume_step` by a new file renamed over it; returns the last step in it.
std::int64_t cut_back(const std::filesystem::path& file, std::int64_t resume_step) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(file, ignored)) return 0;
  std::ifstream in(file, std::ios::binary);
  require(in.good(), ExitCode::environment,
          "cannot read {} (to resume after step {}); correct its permissions", file.string(),
          resume_step);
  AtomicFile out(file, kRunFiles);
  std::int64_t dropped = 0;
  const std::int64_t last_step = copy_kept_lines(in, out, resume_step, dropped);
  out.commit();
  if (dropped > 0)
    log::info("{}: removed {} line(s) that are after step {}, repeated or damaged", file.string(),
              dropped, resume_step);
  return last_step;
}

}  // namespace

std::string to_json_line(const StepRecord& record) {
  std::string line;
  const auto add = [&line](std::string_view quoted_name, const std::string& value) {
    line += fmt::format("{}{}: {}", line.empty() ? "{" : ", ", quoted_name, value);
  };
  for (const Column& column : kColumns)
    add(fmt::format("\"{}\"", column.name), column.real != nullptr
                                                ? number(record.*column.real)
                                                : fmt::format("{}", record.*column.whole));
  for (const auto& [name, value] : record.extra) add(quoted(name), number(value));
  return line + "}";
}

std::vector<StepRecord> read_records(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  require(in.good(), ExitCode::data, "cannot read {}; name a metrics.jsonl", file.string());
  std::vector<StepRecord> records;
  std::string line;
  for (std::int64_t number = 1; std::getline(in, line); ++number) {
    auto record = parse_record(line);
    if (!record && in.eof()) break;  // no line end: torn by a kill
    require(record.has_value(), ExitCode::data, "not a record of a step ({}:{}); remove the line",
            file.string(), number);
    records.push_back(std::move(*record));
  }
  return records;
}

JsonlSink::JsonlSink(std::filesystem::path file, std::int64_t resume_step) {
  last_step_ = cut_back(file, resume_step);
  out_ = std::make_unique<AppendFile>(std::move(file));
}

JsonlSink::~JsonlSink() = default;

void JsonlSink::write(const StepRecord& record) {
  TESSERA_EXPECT(record.step > last_step_, "step {} after step {}", record.step, last_step_);
  out_->write(to_json_line(record) + '\n');
  last_step_ = record.step;
}

}  // namespace tessera::metrics
