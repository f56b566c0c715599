// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>
#include <tuple>

#include "impl.hpp"
#include "tessera/mesh/device_mesh.hpp"

namespace tessera::mesh {
namespace {

constexpr std::size_t kMostListed = 8;

/// "0, 2, 4, 6", or "0, 64, 128 .. 960" for long ones.
std::string list_ranks(const std::vector<Rank>& ranks) {
  if (ranks.size() <= kMostListed) return fmt::format("{}", fmt::join(ranks, ", "));
  return fmt::format("{}, {}, {} .. {}", ranks[0], ranks[1], ranks[2], ranks.back());
}

/// "node1 (ranks 0-3), node2 (ranks 4-7)": each run of neighbouring ranks on one host.
std::string list_hosts(const std::vector<std::string>& hosts) {
  std::vector<std::string> runs;
  for (std::size_t first = 0; first < hosts.size();) {
    std::size_t end = first;
    while (end < hosts.size() && hosts[end] == hosts[first]) ++end;
    runs.push_back(end - first == 1
                       ? fmt::format("{} (rank {})", hosts[first], first)
                       : fmt::format("{} (ranks {}-{})", hosts[first], first, end - 1));
    first = end;
  }
  if (runs.size() <= kMostListed) return fmt::format("{}", fmt::join(runs, ", "));
  const std::span<const std::string> head(runs.data(), kMostListed);
  return fmt::format("{}, and {} more", fmt::join(head, ", "), runs.size() - kMostListed);
}

}  // namespace

std::string DeviceMesh::overview() const {
  if (layout_.world() == 1)
    return fmt::format("mesh of 1 rank{}\n",
                       impl_->hosts.empty() ? "" : " on " + impl_->hosts.front());
  std::string text = fmt::format("mesh {} of {} {}\n", layout_.to_string(), layout_.world(),
                                 layout_.world() == 1 ? "rank" : "ranks");
  text += fmt::format("  {:<14}{:>6}  {:<10}{}\n", "axis", "degree", "backend", "group of rank 0");
  for (Axis axis : kAxes) {
    const auto& self = impl_->self[axis];
    const auto group = impl_->groups.find(1ul << static_cast<unsigned>(axis));
    text += fmt::format("  {:<14}{:>6}  {:<10}{}\n", name_of(axis), layout_.degree(axis),
                        (self ? self : group->second)->backend(),
                        list_ranks(layout_.group_of(Rank(0), {axis})));
  }
  if (impl_->experts)
    for (const auto& [name, group, ranks] :
         {std::tuple{kExperts, impl_->experts.get(), layout_.expert_group_of(Rank(0))},
          std::tuple{kExpertShards, impl_->expert_shards.get(),
                     layout_.expert_shard_group_of(Rank(0))}})
      text += fmt::format("  {:<14}{:>6}  {:<10}{}\n", name, group->size(), group->backend(),
                          list_ranks(ranks));
  if (!impl_->hosts.empty()) text += fmt::format("  hosts: {}\n", list_hosts(impl_->hosts));
  return text;
}

}  // namespace tessera::mesh
