// SPDX-License-Identifier: Apache-2.0
// Gathers of one stage's weights in the order of a rank's actions, and the sums of their gradients.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "tessera/plan/job_plan.hpp"
#include "tessera/plan/stage_units.hpp"
#include "traffic_rows.hpp"

namespace tessera::plan {

/// A parameter that the first and the last stage have.
struct TiedStages {
  int holders = 1;  ///< pipeline ranks that have one of these stages
  RankGroup ends;   ///< these ranks
};

class WeightTraffic {
 public:
  /// Of the stage with these cells. The plan must outlive this.
  WeightTraffic(const JobPlan& plan, mesh::Rank rank, Range cells, const TiedStages& tied,
                TrafficRows& into);

  /// Once a step: ranks that share weights agree on the scales of those that are gathered in bytes.
  void agree_on_scales();
  /// One microbatch passes the stage.
  void forward();
  void backward();
  /// All sums of a step but those of copies within tp. `pipelined`: the model has several stages.
  void reduce_gradients(bool pipelined);
  /// Adds the bytes of gradients that are summed over copies within tp, by the number of copies.
  void add_copies(std::map<int, std::int64_t>& bytes) const;

 private:
  struct Group {
    WeightGroup weights;
    RankGroup shards;
    std::int64_t elements = 0;      ///< of one rank's flat buffer
    std::int64_t gather_bytes = 0;  ///< of one rank
    std::vector<Placement> places;
    bool gathered = false;
    std::optional<RankGroup> kept;  ///< among these: what the next gather needs
  };
  struct Unit {
    std::vector<std::size_t> groups;
    UnitReshard reshard;
  };
  std::size_t group_of(const WeightGroup& weights, const PlacementOptions& how);
  void resolve_policies(const std::vector<UnitPart>& parts, bool whole_model);
  void gather(const Unit& unit);
  void reshard(const Unit& unit);
  void reshard_within(Group& group, int ranks);

  const JobPlan& plan_;
  mesh::Rank rank_;
  RankGroups groups_of_rank_;
  TiedStages tied_;
  TrafficRows& into_;
  std::int64_t scales_ = 0;
  std::vector<Group> groups_;
  std::vector<Unit> units_;
};

}  // namespace tessera::plan
