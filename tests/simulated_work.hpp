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

/// tessera::sim::CopyCounts: copies that let their caller go, and what held it. None on other
/// devices.
struct Copies {
  std::int64_t asynchronous = 0, blocking = 0;
};
inline Copies simulated_copies() {
  using Function = Copies (*)();
  void* const function = dlsym(RTLD_DEFAULT, "_ZN7tessera3sim11copy_countsEv");
  return function ? reinterpret_cast<Function>(function)() : Copies{};
}
inline Copies operator-(const Copies& later, const Copies& earlier) {
  return {later.asynchronous - earlier.asynchronous, later.blocking - earlier.blocking};
}

}  // namespace tessera::test
