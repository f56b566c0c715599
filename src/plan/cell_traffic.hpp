// SPDX-License-Identifier: Apache-2.0
// What the cells of a unit exchange for one microbatch: tensor, context and expert parallelism, and
// the loss.
#pragma once

#include <cstdint>

#include "tessera/plan/expert_rows.hpp"
#include "tessera/plan/job_plan.hpp"
#include "tessera/plan/stage_units.hpp"
#include "traffic_rows.hpp"

namespace tessera::plan {

struct UnitTraffic {
  TrafficRows forward;
  TrafficRows again;     ///< before backward, of what recompute by operation drops
  TrafficRows backward;  ///< without what is recomputed
  TrafficRows loss;      ///< after the forward pass of the model's last unit
};

class CellTraffic {
 public:
  /// The plan must outlive this.
  CellTraffic(const JobPlan& plan, mesh::Rank rank);

  UnitTraffic of_unit(const UnitPart& part) const;

 private:
  /// Tokens of a microbatch with so many features: all of them, or this rank's part.
  std::int64_t whole(std::int64_t features) const;
  std::int64_t piece(std::int64_t features) const { return whole(features) / tp_.size; }
  std::int64_t chunks() const;
  void before(const model::CellSpec& cell, UnitTraffic& unit) const;
  void inside(const model::CellSpec& cell, UnitTraffic& unit) const;
  void after(const model::CellSpec& cell, UnitTraffic& unit) const;
  void to_experts(UnitTraffic& unit) const;
  void from_experts(UnitTraffic& unit) const;
  void gather_tokens(std::int64_t features, UnitTraffic& unit) const;
  void sum_tokens(UnitTraffic& unit) const;
  void attend(const model::CellSpec& cell, UnitTraffic& unit) const;
  void dispatch(UnitTraffic& unit) const;
  void combine(UnitTraffic& unit) const;
  void add_loss(UnitTraffic& unit) const;
  ExpertChoices choices() const;
  std::int64_t routed_rows() const;
  std::int64_t arriving_rows() const;
  std::int64_t tokens_of_rank(std::int64_t rank) const;

  const JobPlan& plan_;
  const model::ModelSpec& model_;
  mesh::Rank rank_;
  RankGroups groups_;
  RankGroup tp_, cp_, ep_;
  std::int64_t tokens_, element_bytes_, sum_bytes_;
};

}  // namespace tessera::plan
