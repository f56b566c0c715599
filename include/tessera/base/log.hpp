// SPDX-License-Identifier: Apache-2.0
// Logging: one logger for the program, on standard error; only rank 0 prints, unless set otherwise.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

namespace tessera::log {

enum class Level { debug, info, warning, error, off };

/// Sets what is printed and the name before each line (e.g. "rank 3"; empty = nothing).
void configure(Level level, const std::string& who);
void write(Level level, std::string_view message);

template <class... Args>
void debug(fmt::format_string<Args...> f, Args&&... a) {
  write(Level::debug, fmt::format(f, std::forward<Args>(a)...));
}
template <class... Args>
void info(fmt::format_string<Args...> f, Args&&... a) {
  write(Level::info, fmt::format(f, std::forward<Args>(a)...));
}
template <class... Args>
void warning(fmt::format_string<Args...> f, Args&&... a) {
  write(Level::warning, fmt::format(f, std::forward<Args>(a)...));
}
template <class... Args>
void error(fmt::format_string<Args...> f, Args&&... a) {
  write(Level::error, fmt::format(f, std::forward<Args>(a)...));
}

}  // namespace tessera::log
