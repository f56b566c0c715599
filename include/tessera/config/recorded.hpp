// SPDX-License-Identifier: Apache-2.0
// What an earlier run was configured with, from the text of Resolved::to_toml() that its
// checkpoints and folder keep.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/config/job_config.hpp"

namespace tessera::config {

/// The value of "section.key" as the record spells it: `64`, `"1B"`. Empty where it is absent or
/// not there.
std::optional<std::string> recorded(std::string_view toml, std::string_view key);
/// The same of a key whose value is a string, without its quotes; "" where it is absent.
std::string recorded_text(std::string_view toml, std::string_view key);

/// "training.seq_len is 128, was 64, debug.seed is 1, was 0": those of `keys` whose values differ
/// in the record `now`; empty where none does.
std::string differences(std::string_view toml, std::string_view now,
                        const std::vector<std::string_view>& keys);

}  // namespace tessera::config
