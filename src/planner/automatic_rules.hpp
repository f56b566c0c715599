// SPDX-License-Identifier: Apache-2.0
// When a planner can choose values at all.
#pragma once

#include <fmt/format.h>

#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include "tessera/config/resolve.hpp"

namespace tessera::planner {

class AutomaticRules {
 public:
  AutomaticRules(config::Reading& job, int ranks);

  /// Does the job leave a value to the planner, and is it understood?
  bool asked() const { return !open_.empty() && job_.whole && job_.problems.empty(); }
  std::string_view first() const { return open_.front(); }

  /// Complains of what stands against a choice, whatever fits.
  bool obeyed();

  template <class... Args>
  void wrong(std::initializer_list<std::string_view> keys, fmt::format_string<Args...> format,
             Args&&... args) {
    job_.complain_of(keys, fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  /// The first of these keys that is left open; empty if none is.
  std::string_view first_of(std::initializer_list<std::string_view> keys) const;
  void degrees();
  void batch();

  config::Reading& job_;
  int ranks_;
  std::vector<std::string_view> open_;
};

}  // namespace tessera::planner
