// SPDX-License-Identifier: Apache-2.0
// A job on GPUs that are not here, for tests of the search.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tessera/planner/variant_space.hpp"

namespace tessera::planner {

/// llama3 of 8,192 tokens a sequence, unless `flags` say something else.
struct JobCase {
  const char* name = "";
  int gpus = 8;
  std::vector<std::string> flags = {};
  const char* machine = "h100-700w";
  double memory_gib = 0;  ///< 0: that of the machine
  const char* stack = "tessera";
  bool splits = false;  ///< other splits into stages than the job's are tried, too
};

/// Eight GPUs with room for a choice.
inline JobCase dense_job() {
  return {"Dense", 8, {"--model.flavor", "8B", "--training.local_batch_size", "2"}};
}
/// Memory decides.
inline JobCase tight_job() {
  return {
      "Tight", 4, {"--model.flavor", "3B", "--training.local_batch_size", "2"}, "h100-700w", 20};
}

inline std::string name_of_case(const testing::TestParamInfo<JobCase>& info) {
  return info.param.name;
}

struct PlannedJob {
  Machine machine;
  Stack stack;
  config::Resolved job;
  plan::JobPlan plan;
  VariantSpace space;

  explicit PlannedJob(const JobCase& from)
      : machine(load_machine(from.machine)),
        stack(load_stack(from.stack)),
        job(config::resolve(flags_of(from))),
        plan(plan::plan_job(job, from.gpus, 0)),
        space(job, plan, limit(machine, from.memory_gib), stack) {
    if (!from.splits) space.restrict_to(Knob::split, {0});
  }

 private:
  static std::vector<std::string> flags_of(const JobCase& from) {
    std::vector<std::string> flags{"--training.dataset_path", "x"};
    const auto add = [&](const char* key, const char* value) {
      if (std::ranges::find(from.flags, key) == from.flags.end())
        flags.insert(flags.end(), {key, value});
    };
    add("--model.name", "llama3");
    add("--training.seq_len", "8192");
    flags.insert(flags.end(), from.flags.begin(), from.flags.end());
    return flags;
  }
  static const Machine& limit(Machine& machine, double gib) {
    if (gib > 0) machine.memory_bytes = gib * 1024 * 1024 * 1024;
    return machine;
  }
};

/// Calls use(variant) for every legal variant.
template <class Use>
void each_legal(const VariantSpace& space, const Use& use, std::size_t knob = 0,
                const Variant& from = {}) {
  if (knob == kKnobs) {
    if (space.legal(from)) use(from);
    return;
  }
  Variant variant = from;
  for (const int value : space.values(kEachKnob[knob])) {
    variant[kEachKnob[knob]] = value;
    each_legal(space, use, knob + 1, variant);
  }
}

}  // namespace tessera::planner
