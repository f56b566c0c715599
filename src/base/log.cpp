// SPDX-License-Identifier: Apache-2.0
#include "tessera/base/log.hpp"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <array>
#include <memory>

namespace tessera::log {
namespace {

spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> instance = [] {
    auto made = std::make_shared<spdlog::logger>(
        "tessera", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    made->set_pattern("%^%l%$: %v");
    return made;
  }();
  return *instance;
}

spdlog::level::level_enum level_of(Level level) {
  constexpr std::array levels{spdlog::level::debug, spdlog::level::info, spdlog::level::warn,
                              spdlog::level::err, spdlog::level::off};
  return levels[static_cast<std::size_t>(level)];
}

}  // namespace

void configure(Level level, const std::string& who) {
  logger().set_level(level_of(level));
  logger().set_pattern(who.empty() ? "%^%l%$: %v" : "%^%l%$: [" + who + "] %v");
}

void write(Level level, std::string_view message) { logger().log(level_of(level), message); }

}  // namespace tessera::log
