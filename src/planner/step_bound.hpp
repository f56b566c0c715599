// SPDX-License-Identifier: Apache-2.0
// What a step takes and holds at least, without simulating its pipeline: a search need not price
// what cannot be among the best.
#pragma once

#include "cell_time.hpp"
#include "shares.hpp"

namespace tessera::planner {

/// Times of the cells of all workloads that differ in pipeline, replicas and sharding alone. Keeps
/// pointers to machine and stack.
class StepBound {
 public:
  StepBound(const Workload& work, const Machine& machine, const Stack& stack);

  /// At least so many seconds, of any of these workloads that has `sequences` a step.
  double computation(const Workload& work, std::int64_t sequences) const;
  /// The same with what this one waits for weights and gradients.
  double seconds(const Workload& work) const;

 private:
  struct Part {
    CellTime time;
    double count = 0;
  };
  /// Of one microbatch, with or without waiting.
  double of_microbatch(const Workload& work, bool waits) const;

  const Machine* machine_;
  const Stack* stack_;
  Part dense_, mixture_, predictor_, embedding_, head_;
};

/// At least so many bytes are held by the rank that needs most: state, what is gathered, and a
/// microbatch on its way through all stages.
double least_bytes(const Workload& work, const Stack& stack);

}  // namespace tessera::planner
