// SPDX-License-Identifier: Apache-2.0
// What a step takes and holds at least, without simulating its pipeline: a search need not price
// what cannot be among the best.
#pragma once

#include "cell_time.hpp"
#include "held_bytes.hpp"
#include "pipeline_shape.hpp"
#include "shares.hpp"

namespace tessera::planner {

/// Times of the cells of all workloads that differ in pipeline, replicas and sharding alone. Keeps
/// pointers to machine and stack.
class StepBound {
 public:
  StepBound(const Workload& work, const Machine& machine, const Stack& stack);

  /// At least so many seconds, of any of these workloads that has `sequences` a step.
  double computation(const Workload& work, std::int64_t sequences) const;
  /// Of those with this pipeline, `ranks` being its shapes; `splits`: as in least_seconds().
  double pipeline(const Workload& work, const std::vector<RankShape>& ranks, bool splits) const;
  /// The same with what this one waits for weights and gradients.
  double seconds(const Workload& work, const std::vector<RankShape>& ranks, bool splits) const;

 private:
  double run(const Workload& work, const std::vector<RankShape>& ranks, bool splits,
             bool waits) const;
  PerPart<PartSeconds> parts(const Workload& work, bool waits) const;

  const Machine* machine_;
  const Stack* stack_;
  PerPart<double> counts_;  ///< of the model
  PerPart<CellTime> times_;
  PerPart<PartSeconds> seconds_;
};

/// At least so many bytes are held by the rank that needs most: state, what is gathered, and a
/// microbatch on its way through all stages.
double least_bytes(const Workload& work, const Stack& stack);
/// A better bound: each rank of the pipeline, whose stages are known, has these moments.
double least_bytes(const Workload& work, const Stack& stack, const RankMoments& moments);

}  // namespace tessera::planner
