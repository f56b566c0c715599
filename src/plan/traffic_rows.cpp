// SPDX-License-Identifier: Apache-2.0
#include "traffic_rows.hpp"

namespace tessera::plan {

RankGroup RankGroups::along(const std::vector<mesh::Axis>& axes) const {
  RankGroup group{layout_.group_name(axes), 1};
  for (const mesh::Axis axis : axes) group.size *= layout_.degree(axis);
  return group;
}

RankGroup RankGroups::expert_shards() const {
  using enum mesh::Axis;
  const RankGroup ranks =
      layout_.experts_cut_by_tp() ? along({dp_shard, cp}) : along({dp_shard, cp, tp});
  const int ep = layout_.expert_degree();
  return ep > 1 ? RankGroup{mesh::kExpertShards, ranks.size / ep, true} : ranks;
}

RankGroup RankGroups::neighbours(const RankGroup& all, int ranks) const {
  return ranks == all.size ? all : RankGroup{mesh::neighbours_name(ranks, all.name), ranks};
}

void TrafficRows::add(const RankGroup& group, comm::Call call, std::int64_t bytes,
                      std::int64_t calls) {
  if ((group.size == 1 && !group.made) || calls == 0) return;
  Sum& sum = sums_[{group.name, call}];
  sum.calls += calls;
  sum.bytes += bytes;
}

void TrafficRows::add(const TrafficRows& other, std::int64_t times) {
  if (times == 0) return;
  for (const auto& [key, sum] : other.sums_) {
    sums_[key].calls += times * sum.calls;
    sums_[key].bytes += times * sum.bytes;
  }
}

std::vector<TrafficRow> TrafficRows::rows() const {
  std::vector<TrafficRow> rows;
  for (const auto& [key, sum] : sums_)
    rows.push_back({key.first, key.second, sum.calls, sum.bytes});
  return rows;
}

}  // namespace tessera::plan
