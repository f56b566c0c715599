// SPDX-License-Identifier: Apache-2.0
#include "tessera/base/error.hpp"
#include "tessera/plan/checkpoint_plan.hpp"

namespace tessera::plan {

WeightOrigins WeightOrigins::of(const config::Resolved& resolved) {
  const config::Checkpoint& c = resolved.job.checkpoint;
  const auto named = [&](const char* key) { return resolved.origin(key) == "command line"; };
  WeightOrigins origins;
  origins.resumes = c.enable;
  origins.checkpoints = std::filesystem::path(resolved.job.job.dump_folder) / c.folder;
  origins.step = c.load_step;
  origins.step_named = c.load_step >= 0 && named("checkpoint.load_step");
  if (c.initial_load_path)
    origins.from = {
        *c.initial_load_path, c.initial_load_in_hf, !c.initial_load_model_only,
        named("checkpoint.initial_load_path") || named("checkpoint.initial_load_in_hf")};
  return origins;
}

WeightOrigin WeightOrigins::choose(config::JobUse use, bool has_own) const {
  const WeightOrigin otherwise = from ? WeightOrigin::initial_state : WeightOrigin::initial_values;
  if (use == config::JobUse::training)
    return resumes && (has_own || step >= 0) ? WeightOrigin::own : otherwise;
  const bool others_named = from && from->named;
  require(!step_named || !others_named, ExitCode::usage,
          "--checkpoint.load_step selects a step of the run, and the weights of {} are named, too; "
          "omit one of them",
          from ? from->path.string() : "");
  if (step_named) return WeightOrigin::own;
  return has_own && !others_named ? WeightOrigin::own : otherwise;
}

}  // namespace tessera::plan
