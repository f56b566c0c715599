// SPDX-License-Identifier: Apache-2.0
// All variants of a job on its GPUs: which there are, which are legal, what each would run, and as
// what job.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tessera/config/resolve.hpp"
#include "tessera/plan/job_plan.hpp"
#include "tessera/planner/machine.hpp"
#include "tessera/planner/stack.hpp"
#include "tessera/planner/variant.hpp"
#include "tessera/planner/workload.hpp"

namespace tessera::planner {

/// What a backward makes again, as a job says it and as it is priced.
struct Recomputation {
  std::string mode, option;
  Recompute kind = Recompute::none;
  double blocks = 1;
};

/// A schedule, and how many stages each rank has.
struct Cut {
  const schedule::Traits* schedule = nullptr;  ///< null: the job's file
  int chunks = 1;
};

/// A job with other values of some keys, each as "key = value".
struct ChangedJob {
  std::vector<std::string> changes;
  config::Resolved job;
};

/// Keeps references to the job, its plan and the stack.
class VariantSpace {
 public:
  /// `plan`: of `job`.
  VariantSpace(const config::Resolved& job, const plan::JobPlan& plan, const Machine& machine,
               const Stack& stack);

  /// The values that a knob may have, the job's own first.
  const std::vector<int>& values(Knob knob) const { return values_[knob]; }
  /// Leaves these values alone.
  void restrict_to(Knob knob, std::vector<int> values) { values_[knob] = std::move(values); }
  /// Lets a variant's job differ from the job in these keys alone.
  void change_only(std::set<std::string, std::less<>> keys) { changeable_ = std::move(keys); }
  /// Are all values of this variant among them?
  bool has(const Variant& variant) const;
  const Variant& own() const { return own_; }
  /// The job as it is, and its sequences a step.
  const Workload& own_work() const { return work_; }
  std::int64_t sequences() const { return sequences_; }

  /// Do the degrees divide what they cut, and is no knob turned that has no effect? Rules that
  /// concern neither mesh nor batch are those of a plan.
  bool legal(const Variant& variant) const;
  /// The part of legal() that needs no schedule.
  bool divides(const Variant& variant) const;
  /// Of a legal variant: what workload_of() makes of the changed job's plan.
  Workload workload(const Variant& variant) const;
  /// The same without action lists: enough for what ranks compute and store, but not for the order
  /// of the pipeline.
  Workload without_lists(const Variant& variant) const;
  /// Changed keys have the origin "tessera plan". Nothing if a rule of plans forbids the job, or
  /// it would change other keys than change_only() says.
  std::optional<ChangedJob> job(const Variant& variant) const;

  /// Of a pipeline's variant; null for one of a single rank, and for the job's file.
  const schedule::Traits* schedule_of(const Variant& variant) const;
  /// The value of Knob::recompute that keeps least.
  int most_recomputed() const;
  /// How many knobs are turned away from the job's own values.
  int turned(const Variant& variant) const;
  static const char* name_of(Knob knob);
  std::string text_of(Knob knob, const Variant& variant) const;

 private:
  using Stages = IndexedVector<schedule::StageIndex, StageContent>;

  void find_degrees(const Machine& machine);
  void find_policies(const Machine& machine);
  void find_schedules();
  void find_splits();
  bool can_overlap_chunks() const;
  bool has_effect(const Variant& variant) const;
  bool frees_weights(const Variant& variant) const;
  bool adds_whole_gradients(const Variant& variant) const;
  bool keeps_batch(const Variant& variant) const;
  std::int64_t microbatches(const Variant& variant) const;
  std::int64_t loss_chunk_tokens(const Workload& work) const;
  /// The keys that shape a pipeline.
  config::Parallelism pipeline_keys(const Variant& variant) const;
  /// Its stages; null where the model or the schedule does not fit, or another split makes the
  /// same.
  const Pipeline* pipeline_of(const Variant& variant) const;
  std::optional<Pipeline> make_pipeline(const Variant& variant) const;
  schedule::Pairs pairs_of(const Variant& variant) const;
  void set_pipeline(const Variant& variant, Pipeline& to) const;
  void set_batch(const Variant& variant, config::JobConfig& to, ChangedJob& out) const;

  const config::Resolved& job_;
  const plan::JobPlan& plan_;
  const Stack& stack_;
  Workload work_;
  Variant own_;
  std::int64_t sequences_ = 0;  ///< of a step
  PerKnob<std::vector<int>> values_;
  std::vector<Recomputation> recomputations_;
  std::vector<Cut> cuts_;
  std::vector<std::string> splits_;  ///< values of pipeline_parallel_split, the job's own first
  std::optional<std::set<std::string, std::less<>>> changeable_;  ///< nothing: all
  /// by their number and split
  mutable std::map<std::pair<int, int>, std::optional<Stages>> stages_;
  /// by degree, schedule and split
  mutable std::map<std::array<int, 3>, std::optional<Pipeline>> pipelines_;
  /// Copies share what it knows.
  std::shared_ptr<plan::Planner> planner_ = std::make_shared<plan::Planner>();
};

}  // namespace tessera::planner
