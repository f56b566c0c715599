// SPDX-License-Identifier: Apache-2.0
// What model.converters may name.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "tessera/config/job_config.hpp"

namespace tessera::config {

enum class Converter : std::uint8_t { float8_linear, mx_linear, float8_experts, mx_experts };

/// Of TorchTitan's names, those of earlier versions too.
std::optional<Converter> converter_named(std::string_view name);

/// Does the job ask for it, by model.converters or a key of its own?
bool wants(const JobConfig& job, Converter converter);

}  // namespace tessera::config
