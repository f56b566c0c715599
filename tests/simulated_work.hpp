// SPDX-License-Identifier: Apache-2.0
// What the simulated GPU counts.
#pragma once

#include <dlfcn.h>

#include <map>
#include <sstream>
#include <string>

namespace tessera::test {

/// By kind and name: "launch aten::mm".
using Work = std::map<std::string, std::int64_t>;

/// Of this process so far; nothing on other devices.
inline Work simulated_work() {
  using Function = std::string (*)();
  void* const function = dlsym(RTLD_DEFAULT, "_ZN7tessera3sim12work_by_nameB5cxx11Ev");
  if (function == nullptr) return {};
  std::istringstream lines(reinterpret_cast<Function>(function)());
  Work found;
  for (std::string kind, name, count; lines >> kind >> name >> count;)
    found[kind + " " + name] = std::stoll(count);
  return found;
}

inline Work difference(Work later, const Work& earlier) {
  for (const auto& [name, count] : earlier) later[name] -= count;
  std::erase_if(later, [](const auto& each) { return each.second == 0; });
  return later;
}

inline std::int64_t sum_of(const Work& work, const std::string& kind) {
  std::int64_t sum = 0;
  for (const auto& [name, count] : work)
    if (name.starts_with(kind + " ")) sum += count;
  return sum;
}

}  // namespace tessera::test
