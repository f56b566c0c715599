// SPDX-License-Identifier: Apache-2.0
#include "tessera/config/converters.hpp"

#include <algorithm>
#include <utility>

namespace tessera::config {

std::optional<Converter> converter_named(std::string_view name) {
  constexpr std::pair<std::string_view, Converter> kNames[] = {
      {"quantize.linear.float8", Converter::float8_linear},
      {"quantize.dense.float8", Converter::float8_linear},
      {"float8", Converter::float8_linear},
      {"quantize.linear.mx", Converter::mx_linear},
      {"quantize.dense.mx", Converter::mx_linear},
      {"mx", Converter::mx_linear},
      {"quantize.grouped_mm.float8", Converter::float8_experts},
      {"quantize.grouped_mm.mx", Converter::mx_experts}};
  for (const auto& [known, converter] : kNames)
    if (known == name) return converter;
  return std::nullopt;
}

bool wants(const JobConfig& job, Converter converter) {
  if (converter == Converter::float8_linear && job.quantize.linear.float8.enable) return true;
  return std::ranges::any_of(job.model.converters, [&](const std::string& name) {
    return converter_named(name) == converter;
  });
}

}  // namespace tessera::config
