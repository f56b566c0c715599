// SPDX-License-Identifier: Apache-2.0
// Traffic that is added up by communicator and call.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tessera/plan/step_traffic.hpp"

namespace tessera::plan {

/// The ranks of a communicator, as mesh::DeviceMesh names them.
struct RankGroup {
  std::string name;
  int size = 1;
  bool made = false;  ///< a communicator of its own also where it is one rank, which counts then
};

/// The groups of one rank of the mesh.
class RankGroups {
 public:
  explicit RankGroups(const mesh::Layout& layout) : layout_(layout) {}

  RankGroup along(const std::vector<mesh::Axis>& axes) const;
  /// As DeviceMesh::experts() and expert_shards().
  RankGroup experts() const { return {mesh::kExperts, layout_.expert_degree()}; }
  RankGroup expert_shards() const;
  RankGroup neighbours(const RankGroup& all, int ranks) const;

 private:
  const mesh::Layout& layout_;
};

class TrafficRows {
 public:
  /// Groups of one rank count nothing, but for those that are made.
  void add(const RankGroup& group, comm::Call call, std::int64_t bytes, std::int64_t calls = 1);
  void add(const TrafficRows& other, std::int64_t times = 1);
  std::vector<TrafficRow> rows() const;

 private:
  struct Sum {
    std::int64_t calls = 0, bytes = 0;
  };
  std::map<std::pair<std::string, comm::Call>, Sum> sums_;
};

}  // namespace tessera::plan
