// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/cores.hpp"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>

namespace tessera::train {
namespace {

std::optional<double> quota() {
  std::string line;
  std::getline(std::ifstream("/sys/fs/cgroup/cpu.max"), line);
  return cores_of_quota(line);
}

}  // namespace

bool allows(const std::string& mask, std::size_t core) {
  return core / 8 < mask.size() &&
         (static_cast<unsigned char>(mask[core / 8]) >> core % 8 & 1) != 0;
}

std::string allowed_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return {};
  std::string mask(reinterpret_cast<const char*>(&set), sizeof set);
  mask.erase(mask.find_last_not_of('\0') + 1);
  return mask;
}

int share_of_cores(const std::vector<std::string>& masks, std::size_t self) {
  double share = 0;
  for (std::size_t core = 0; core < 8 * masks[self].size(); ++core)
    if (allows(masks[self], core))
      share += 1.0 / static_cast<double>(std::ranges::count_if(
                         masks, [&](const auto& m) { return allows(m, core); }));
  return std::max(1, static_cast<int>(share + 1e-6));
}

std::optional<double> cores_of_quota(std::string_view cpu_max) {
  const std::string text(cpu_max);
  char* rest = nullptr;
  const double quota = std::strtod(text.c_str(), &rest), period = std::strtod(rest, nullptr);
  if (!(quota > 0 && period > 0) || !std::isfinite(quota / period)) return std::nullopt;
  return quota / period;
}

int cores_of_this_rank(comm::World& world) {
  const std::string here = world.host() + '\n';
  std::vector<std::string> masks;
  std::size_t self = 0;
  const auto all = comm::all_gather_strings(world.control(), here + allowed_cores());
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (!all[rank].starts_with(here)) continue;
    if (rank == static_cast<std::size_t>(world.rank())) self = masks.size();
    masks.push_back(all[rank].substr(here.size()));
  }
  const double granted = quota().value_or(HUGE_VAL) / world.local_size();
  return static_cast<int>(
      std::max(1.0, std::min<double>(share_of_cores(masks, self), std::floor(granted))));
}

}  // namespace tessera::train
