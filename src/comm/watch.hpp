// SPDX-License-Identifier: Apache-2.0
// For how long calls may take.
#pragma once

#include <chrono>

namespace tessera::comm {

/// What Watchdog::Patience allows now; zero where none lives.
std::chrono::nanoseconds patience() noexcept;

}  // namespace tessera::comm
