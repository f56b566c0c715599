// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <map>
#include <mutex>
#include <utility>

#include "host_thread.hpp"
#include "sim/sim.hpp"

namespace tessera::sim {
namespace {

constexpr std::array kNames{"wait", "launch", "copy", "collective"};

/// Lives until the process ends: threads of streams may outlive every static object.
struct Counted {
  std::mutex mutex;
  std::map<std::pair<WorkKind, std::string>, std::int64_t> by_name;
};

Counted& counted() {
  static auto* const instance = new Counted;
  return *instance;
}

}  // namespace

void count_work(WorkKind kind, const std::string& what) {
  const cudart::InsideDouble inside;
  Counted& all = counted();
  const std::lock_guard lock(all.mutex);
  ++all.by_name[{kind, what}];
}

std::string work_by_name() {
  const cudart::InsideDouble inside;
  Counted& all = counted();
  const std::lock_guard lock(all.mutex);
  std::string lines;
  for (const auto& [key, count] : all.by_name)
    lines += std::string(kNames[static_cast<std::size_t>(key.first)]) + " " + key.second + " " +
             std::to_string(count) + "\n";
  return lines;
}

}  // namespace tessera::sim
