// SPDX-License-Identifier: Apache-2.0
#include "tessera/config/microbatch_steps.hpp"

#include <charconv>

namespace tessera::config {
namespace {

std::optional<std::int64_t> count_in(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (fault != std::errc() || end != text.data() + text.size() || value < 1) return std::nullopt;
  return value;
}

}  // namespace

std::optional<MicrobatchStep> microbatch_step(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto step = count_in(text.substr(0, colon)), size = count_in(text.substr(colon + 1));
  if (!step || !size) return std::nullopt;
  return MicrobatchStep{*step, *size};
}

}  // namespace tessera::config
