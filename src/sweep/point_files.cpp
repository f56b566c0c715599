// SPDX-License-Identifier: Apache-2.0
#include "point_files.hpp"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <string.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <fstream>
#include <sstream>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/base/text_file.hpp"
#include "tessera/base/utf8.hpp"

namespace tessera::sweep {

namespace fs = std::filesystem;

namespace {
constexpr std::size_t kOutputRead = 64 << 10, kReasonLength = 300;
constexpr std::string_view kMark = "=== attempt ";
}  // namespace

std::string tail_of(const fs::path& file, std::size_t bytes) {
  std::ifstream in(file, std::ios::binary | std::ios::ate);
  if (!in) return "";
  const auto size = static_cast<std::size_t>(in.tellg());
  std::string text(std::min(size, bytes), '\0');
  in.seekg(static_cast<std::streamoff>(size - text.size()));
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));  // nothing of a folder
  return text;
}

void append_to(const fs::path& file, const std::string& text) {
  const int descriptor = open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  const bool written = descriptor >= 0 && write(descriptor, text.data(), text.size()) ==
                                              static_cast<ssize_t>(text.size());
  const std::string why = strerror(errno);
  if (descriptor >= 0) close(descriptor);
  require(written, ExitCode::environment, "cannot write {} ({})", file.string(), why);
}

std::string utc_now() {
  return fmt::format(
      "{:%Y-%m-%dT%H:%M:%SZ}",
      fmt::gmtime(std::chrono::system_clock::to_time_t(std::chrono::system_clock::now())));
}

Attempts read_attempts(const fs::path& point_folder) {
  Attempts attempts;
  std::istringstream lines(read_text(point_folder / kAttemptsFile).value_or(""));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string word, time;
    words >> word >> time;
    if (word == "start") {
      ++attempts.count, attempts.code.reset(), attempts.why.clear();
      std::getline(words >> std::ws, attempts.where);
    } else if (int code = 0; word == "end" && words >> code) {
      attempts.code = code;
      std::getline(words >> std::ws, attempts.why);
    }
  }
  return attempts;
}

std::string printed_reason(const fs::path& point_folder) {
  const std::string text = tail_of(point_folder / kOutputFile, kOutputRead);
  const std::size_t mark = text.rfind(kMark);
  constexpr std::string_view kMessage = "\ntessera: ";
  const std::size_t begin = text.rfind(kMessage);
  if (begin == text.npos || (mark != text.npos && begin < mark)) return "";
  // A message of several problems has its first one on the second line.
  std::istringstream lines(text.substr(begin + kMessage.size()));
  std::string first, second;
  std::getline(lines, first);
  if (std::getline(lines, second) && second.starts_with("  ")) first += ":" + second.substr(1);
  first = with_whole_characters(first);
  if (first.size() <= kReasonLength) return first;
  const std::string_view begin_of_it = std::string_view(first).substr(0, kReasonLength);
  return first.substr(0, valid_utf8_prefix(begin_of_it)) + "...";
}

std::string meaning_of(int code) {
  switch (code) {
    case 0:
      return "done";
    case 2:
      return "wrong use or configuration";
    case 3:
      return "environment: MPI, libraries, permissions or memory";
    case 4:
      return "data or tokenizer";
    case 5:
      return "a checkpoint is damaged or missing, or cannot be written";
    case 6:
      return "stopped on values that are not finite";
    case 7:
      return "communication failed or hung";
    case 75:
      return "stopped and saved; run it again to resume";
    case 137:
      return "a rank was killed (SIGKILL)";
    default:
      break;
  }
  return code > 128 && code < 160
             ? fmt::format("ended by signal {} ({})", code - 128, strsignal(code - 128))
             : fmt::format("exit code {}", code);
}

void set_reason(PointStatus& point, std::string reason) {
  point.reason = std::move(reason);
  if (point.skipped == 0) return;
  point.reason += fmt::format("{}{} of {} steps skipped: loss or gradient not finite",
                              point.reason.empty() ? "" : "; ", point.skipped, point.step);
}

}  // namespace tessera::sweep
