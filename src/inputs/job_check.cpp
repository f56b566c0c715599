// SPDX-License-Identifier: Apache-2.0
#include "tessera/inputs/job_check.hpp"

#include "named_files.hpp"
#include "sample_check.hpp"
#include "tessera/config/key_names.hpp"
#include "tessera/config/option_table.hpp"
#include "tessera/hf/config.hpp"
#include "tessera/planner/automatic.hpp"
#include "tessera/planner/machine.hpp"

namespace tessera::inputs {
namespace {

/// Whether values are chosen for the machine or not: predictions of a run are for it, too.
void check_machine(config::Reading& job, bool looks_at_files) {
  const std::optional<std::string>& name = job.resolved.job.job.machine;
  if (!name || *name == "host" || job.use != config::JobUse::training) return;
  if (name->ends_with(".toml") && !looks_at_files) return;
  if (!config::left_to_planner(job.resolved.job).empty()) return;  // choose_values() complains
  job.obey({config::key_names::kMachine}, [&] { planner::load_machine(*name); });
}

/// The export at the end of a run must not be what fails first.
void check_export(config::Reading& job, const plan::JobPlan& plan) {
  const plan::SavePlan& save = plan.save;
  if (job.use != config::JobUse::training || !save.enabled || !save.last_in_hf || save.seed_only)
    return;
  job.obey({"checkpoint.last_save_in_hf", "model.flavor"},
           [&] { hf::require_exportable(plan.model.shape); });
}

}  // namespace

std::int64_t JobCheck::find_problems(config::Reading& job, int ranks) {
  if (!job.whole) return 0;
  const bool reads = files_ == Files::looked_at;
  job.files_elsewhere = files_ == Files::ignored;
  const std::int64_t vocabulary =
      files_ == Files::ignored ? 0 : check_named_files(job, found_, reads);
  check_machine(job, files_ != Files::ignored);
  planner::choose_values(job, ranks, vocabulary);
  const auto plan = planner_.plan(job, ranks, vocabulary);
  if (plan) check_export(job, *plan);
  if (plan && reads) check_samples(job, *plan);
  return vocabulary;
}

}  // namespace tessera::inputs
