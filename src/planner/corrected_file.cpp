// SPDX-License-Identifier: Apache-2.0
// Corrects numbers in the text of a machine's file, so that its comments and order stay.
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <optional>
#include <sstream>
#include <string_view>

#include "tessera/planner/refinement.hpp"

namespace tessera::planner {
namespace {

/// A number of the file, and the rate that it is. An empty key: all of its section.
struct RatedKey {
  std::string_view section, key;
  Rate rate;
};
constexpr std::array<RatedKey, 12> kRatedKeys{
    {{"core_gflops", "fp32", Rate::products},
     {"core_gflops", "bf16", Rate::products},
     {"core_gflops", "attention_forward", Rate::products},
     {"core_gflops", "attention_backward", Rate::products},
     {"core_g_s", "", Rate::products},
     {"ceiling_tflops", "", Rate::products},
     {"attention_tflops", "", Rate::products},
     {"host", "copy_gb_s", Rate::memory},
     {"gpu", "hbm_tb_s", Rate::memory},
     {"links", "rank_gb_s", Rate::links},
     {"links", "nvlink_gb_s", Rate::links},
     {"links", "nic_gb_s", Rate::links}}};

double factor_of(const std::vector<Correction>& corrections, std::string_view section,
                 std::string_view key) {
  for (const RatedKey& rated : kRatedKeys) {
    if (rated.section != section || (!rated.key.empty() && rated.key != key)) continue;
    for (const Correction& one : corrections)
      if (one.rate == rated.rate) return one.factor;
  }
  return 1;
}

bool begins_number(char letter) { return (letter >= '0' && letter <= '9') || letter == '.'; }

/// Every number before the comment, times `factor`.
std::string scaled_numbers(std::string_view text, double factor) {
  const std::size_t end = std::min(text.find('#'), text.size());
  std::string out;
  std::size_t at = 0;
  while (at < end) {
    double number = 0;
    const auto [rest, problem] = begins_number(text[at])
                                     ? std::from_chars(text.data() + at, text.data() + end, number)
                                     : std::from_chars_result{nullptr, std::errc::invalid_argument};
    if (problem != std::errc{}) {
      out += text[at++];
      continue;
    }
    out += fmt::format("{:.4g}", number * factor);
    at = static_cast<std::size_t>(rest - text.data());
  }
  return out + std::string(text.substr(end));
}

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t"), last = text.find_last_not_of(" \t\r");
  return first == text.npos ? std::string_view() : text.substr(first, last - first + 1);
}

}  // namespace

std::string corrected_file(const std::string& text, const std::vector<Correction>& corrections,
                           const std::vector<std::string>& notes) {
  std::string out, section;
  for (const std::string& note : notes) out += "# " + note + "\n";
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::string_view content = trimmed(std::string_view(line).substr(0, line.find('#')));
    const std::size_t equals = line.find('=');
    if (content.starts_with('[') && content.ends_with(']') && equals == line.npos)
      section = trimmed(content.substr(1, content.size() - 2));
    const double factor =
        content.empty() || equals == line.npos
            ? 1
            : factor_of(corrections, section, trimmed(std::string_view(line).substr(0, equals)));
    out += factor == 1 ? line
                       : line.substr(0, equals + 1) +
                             scaled_numbers(std::string_view(line).substr(equals + 1), factor);
    out += '\n';
  }
  return out;
}

}  // namespace tessera::planner
