// SPDX-License-Identifier: Apache-2.0
// The columns that every step of a run has, in the order in which they are written.
#pragma once

#include <array>
#include <string_view>

#include "tessera/metrics/step_record.hpp"

namespace tessera::metrics {

struct Column {
  std::string_view name;
  std::int64_t StepRecord::*whole;  ///< one of the two is set
  double StepRecord::*real;
};

inline constexpr std::array kColumns{
    Column{"step", &StepRecord::step, nullptr},
    Column{"loss", nullptr, &StepRecord::loss},
    Column{"grad_norm", nullptr, &StepRecord::grad_norm},
    Column{"lr", nullptr, &StepRecord::lr},
    Column{"tokens", &StepRecord::tokens, nullptr},
    Column{"step_seconds", nullptr, &StepRecord::step_seconds},
    Column{"tokens_per_second", nullptr, &StepRecord::tokens_per_second},
    Column{"tps", nullptr, &StepRecord::tps},
    Column{"mfu", nullptr, &StepRecord::mfu},
    Column{"memory_bytes", &StepRecord::memory_bytes, nullptr},
};

}  // namespace tessera::metrics
