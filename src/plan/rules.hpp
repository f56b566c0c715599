// SPDX-License-Identifier: Apache-2.0
// The base of classes that hold rules: how they look at a job, and how they complain.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>

#include "tessera/config/resolve.hpp"

namespace tessera::plan {

class Rules {
 public:
  using Keys = std::initializer_list<std::string_view>;

  explicit Rules(config::Reading& reading) : reading_(reading), job_(reading.resolved.job) {}

 protected:
  /// Of all keys that the rule compares; the first one is to blame.
  template <class... Args>
  void wrong(Keys keys, fmt::format_string<Args...> format, Args&&... args) {
    reading_.complain_of(keys, fmt::format(format, std::forward<Args>(args)...));
  }

  bool obey(Keys keys, const std::function<void()>& rule) { return reading_.obey(keys, rule); }

  /// A warning: "KEY (where it was written)TEXT"; `text` begins with a blank or a colon.
  void warn_of(std::string_view key, std::string_view text) {
    reading_.resolved.warnings.push_back(fmt::format("{} ({}){}", key, at(key), text));
  }

  /// Where a key was written, for a message.
  std::string at(std::string_view key) const { return reading_.place_of(key).exact(); }

  config::Reading& reading_;
  const config::JobConfig& job_;
};

}  // namespace tessera::plan
