// SPDX-License-Identifier: Apache-2.0
// The messages are of event.proto and summary.proto, written field by field: a key (number and wire
// type), then the value.
#include "tessera/metrics/tensorboard.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <bit>
#include <chrono>
#include <cmath>
#include <ctime>

#include "append_file.hpp"
#include "columns.hpp"
#include "tessera/base/crc32c.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/host_name.hpp"

namespace tessera::metrics {
namespace {

template <class Number>
std::string little_endian(Number value) {
  std::string bytes;
  for (std::size_t i = 0; i < sizeof value; ++i)
    bytes += static_cast<char>(value >> (8 * i) & 0xff);
  return bytes;
}

std::uint32_t masked_crc(std::string_view bytes) {
  const std::uint32_t crc = crc32c(0, bytes.data(), bytes.size());
  return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

// Wire types of protocol buffers.
constexpr unsigned kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5;

std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(0x80 | (value & 0x7f));
  return bytes + static_cast<char>(value);
}

std::string field_key(unsigned field, unsigned wire_type) { return varint(field << 3 | wire_type); }

std::string bytes_field(unsigned field, std::string_view bytes) {
  return field_key(field, kBytes) + varint(bytes.size()) + std::string(bytes);
}

/// Summary.Value: tag = 1, simple_value = 2.
std::string scalar(std::string_view tag, double value) {
  return bytes_field(1, tag) + field_key(2, kFixed32) +
         little_endian(std::bit_cast<std::uint32_t>(static_cast<float>(value)));
}

/// Event: wall_time = 1, step = 2; `what` is its payload.
std::string event(std::int64_t step, const std::string& what) {
  const double now =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  return field_key(1, kFixed64) + little_endian(std::bit_cast<std::uint64_t>(now)) +
         field_key(2, kVarint) + varint(static_cast<std::uint64_t>(step)) + what;
}

/// Event.file_version = 3.
std::string version_event() { return event(0, bytes_field(3, "brain.Event:2")); }

/// Event.session_log = 7, SessionLog.status = 1, START = 1.
std::string start_event(std::int64_t step) {
  return event(step, bytes_field(7, field_key(1, kVarint) + varint(1)));
}

/// Event.summary = 5, Summary.value = 1.
std::string summary_event(const StepRecord& record) {
  std::string summary;
  const auto add = [&summary](std::string_view tag, double value) {
    if (std::isfinite(value) || tag == "loss" || tag == "grad_norm")
      summary += bytes_field(1, scalar(tag, value));
  };
  for (const Column& column : kColumns)
    if (column.name != "step")
      add(column.name,
          column.real != nullptr ? record.*column.real : static_cast<double>(record.*column.whole));
  for (const auto& [name, value] : record.extra) add(name, value);
  return event(record.step, bytes_field(5, summary));
}

std::filesystem::path event_file(const std::filesystem::path& folder) {
  const std::string host = host_name();
  const auto seconds = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  for (int n = 0;; ++n) {
    const auto file =
        folder / fmt::format("events.out.tfevents.{:010}.{}.{}.{}", seconds, host, ::getpid(), n);
    if (std::error_code ignored; !std::filesystem::exists(file, ignored)) return file;
  }
}

}  // namespace

std::string tensorboard_stamp() {
  return fmt::format(
      "{:%Y%m%d-%H%M}",
      fmt::localtime(std::chrono::system_clock::to_time_t(std::chrono::system_clock::now())));
}

std::string tensorboard_frame(std::string_view data) {
  const std::string length = little_endian(std::uint64_t{data.size()});
  return length + little_endian(masked_crc(length)) + std::string(data) +
         little_endian(masked_crc(data));
}

TensorBoardWriter::TensorBoardWriter(const std::filesystem::path& folder, std::int64_t first_step) {
  std::error_code code;
  std::filesystem::create_directories(folder, code);
  require(!code, ExitCode::environment,
          "cannot make the folder {} ({}); choose another metrics.save_tb_folder", folder.string(),
          code.message());
  out_ = std::make_unique<AppendFile>(event_file(folder));
  out_->write(tensorboard_frame(version_event()));
  if (first_step > 1) restart(first_step);
}

TensorBoardWriter::~TensorBoardWriter() = default;

void TensorBoardWriter::write(const StepRecord& record) {
  out_->write(tensorboard_frame(summary_event(record)));
}

void TensorBoardWriter::restart(std::int64_t step) {
  out_->write(tensorboard_frame(start_event(step)));
}

const std::filesystem::path& TensorBoardWriter::file() const noexcept { return out_->path(); }

}  // namespace tessera::metrics
