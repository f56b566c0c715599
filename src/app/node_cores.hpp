// SPDX-License-Identifier: Apache-2.0
// Cores that this process may use.
#pragma once

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <string>

namespace tessera::app {

struct Cores {
  int threads = 1;   ///< hardware threads
  int physical = 1;  ///< cores: what mpirun counts as slots
};

inline Cores usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return {};
  std::set<std::string> siblings;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &set)) continue;
    std::string line = std::to_string(cpu);
    std::ifstream("/sys/devices/system/cpu/cpu" + line + "/topology/thread_siblings_list") >> line;
    siblings.insert(line);
  }
  return {std::max(1, CPU_COUNT(&set)), std::max(1, static_cast<int>(siblings.size()))};
}

}  // namespace tessera::app
