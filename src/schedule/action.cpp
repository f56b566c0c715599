// SPDX-License-Identifier: Apache-2.0
#include "tessera/schedule/action.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace tessera::schedule {

int peak_activations(const ActionList& list) {
  int alive = 0, most = 0;
  for (const Action& action : list) {
    alive += kept_by(action.kind);
    most = std::max(most, alive);
  }
  return most;
}

std::string to_string(const Action& action) {
  constexpr std::array names{"F", "I", "W", "B", "SEND_F", "RECV_F", "SEND_B", "RECV_B"};
  const char* name = names[static_cast<std::size_t>(action.kind)];
  return computes(action.kind) ? fmt::format("{}{}{}", action.stage, name, action.microbatch)
                               : fmt::format("{} {}.{}", name, action.stage, action.microbatch);
}

}  // namespace tessera::schedule
