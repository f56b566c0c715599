// SPDX-License-Identifier: Apache-2.0
// Rules for a job's ranks and model: what is cut can be cut, and fits what it is cut for.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "rules.hpp"
#include "tessera/plan/job_plan.hpp"

namespace tessera::plan {

/// Where the rules hold, what follows from them.
class FitRules : public Rules {
 public:
  using ModelSource =
      std::function<std::shared_ptr<const model::ModelSpec>(const model::DecoderShape&)>;

  /// `spec_of`: the model of a shape.
  FitRules(config::Reading& reading, int ranks, std::int64_t vocabulary, ModelSource spec_of);

  /// Finds all problems.
  void all();

  /// After all() without a problem: the parts of the plan that ranks and model decide.
  void put_into(JobPlan& plan) const;

 private:
  void mesh();
  void faults();
  void model();
  void batch();
  void sequence();
  void microbatch_sizes();
  void sharding();
  void fits();
  void validation();
  void pipeline();
  void trials(const schedule::StageMap& map);

  int degree(mesh::Axis axis, int declared) const;
  bool pipelined() const;
  bool knows_pipeline() const;
  bool fill_pipeline(Keys keys, std::int64_t rows);
  void check_blocks(const BatchPlan& batch) const;
  MicrobatchPlan with_microbatches(const schedule::StageMap& map, std::int64_t rows) const;
  bool divides_local_batch(std::string_view key, std::int64_t rows);

  int ranks_;
  std::int64_t vocabulary_;
  ModelSource spec_of_;
  std::optional<mesh::Layout> layout_;
  ModelPlan model_;
  std::optional<MicrobatchPlan> first_;
  std::vector<std::pair<std::int64_t, MicrobatchPlan>> later_;
  std::vector<MicrobatchPlan> trials_;
  std::optional<BatchPlan> validation_;
};

}  // namespace tessera::plan
