// SPDX-License-Identifier: Apache-2.0
#include "take_folder.hpp"

#include "recorded_model.hpp"
#include "tessera/base/error.hpp"
#include "tessera/checkpoint/inspect.hpp"
#include "tessera/comm/agreement.hpp"
#include "tessera/config/flavor.hpp"
#include "tessera/config/recorded.hpp"

namespace tessera::train {
namespace {

void require_same_name(const plan::ModelPlan& model, const std::filesystem::path& folder,
                       const std::string& toml) {
  const std::string name = config::recorded_text(toml, "model.name"),
                    flavor = config::shape_flavor(config::recorded_text(toml, "model.flavor"));
  if (config::recorded(toml, "model.hf_config") || name.empty()) return;
  require(name == model.name && flavor == model.flavor, ExitCode::usage,
          "{} holds checkpoints of another model: {} {}, and this job trains {} {}; choose another "
          "job.dump_folder, or "
          "train that model",
          folder.string(), name, flavor, model.name, model.flavor);
}

/// Reported before the model is built: what differs in its tensors would only be found then, and
/// what does not show in them never.
void require_same_model(const plan::JobPlan& plan) {
  if (!plan.load.resumes) return;
  const std::filesystem::path& folder = plan.load.checkpoints;
  const auto steps = checkpoint::list_steps(folder);
  if (steps.empty()) return;
  checkpoint::Summary newest;
  try {
    newest = checkpoint::summarize(steps.back().path);
  } catch (const Error&) {
    return;  // damaged: loading says so, and takes an older one
  }
  if (!plan.model.from_file && plan.load.initial.left_out().empty())
    require_same_name(plan.model, folder, newest.config_toml);
  const std::string changed = model_differences(*plan.model.spec, newest.extra);
  require(changed.empty(), ExitCode::usage,
          "{} holds checkpoints of another model ({}); choose another job.dump_folder. To start "
          "from its weights there, set checkpoint.initial_load_path",
          folder.string(), changed);
}

/// Such a folder may be another run's, too.
bool is_elsewhere(const std::filesystem::path& checkpoints, const std::filesystem::path& run) {
  std::error_code ignored;
  const auto inside = std::filesystem::weakly_canonical(checkpoints, ignored)
                          .lexically_relative(std::filesystem::weakly_canonical(run, ignored));
  return inside.empty() || *inside.begin() == "..";
}

}  // namespace

FolderLocks take_folders(comm::Communicator& control, const plan::JobPlan& plan) {
  FolderLocks locks;
  comm::on_rank_zero(control, [&] {
    locks.push_back(std::make_unique<metrics::FolderLock>(plan.run.folder));
    require_same_model(plan);
    if (plan.save.enabled && is_elsewhere(plan.load.checkpoints, plan.run.folder)) {
      const std::filesystem::path above = plan.load.checkpoints.lexically_normal().parent_path();
      if (std::filesystem::exists(above / "config.toml"))  // another run, which may own it
        locks.push_back(std::make_unique<metrics::FolderLock>(above));
      locks.push_back(std::make_unique<metrics::FolderLock>(plan.load.checkpoints));
    }
    return std::string();
  });
  return locks;
}

}  // namespace tessera::train
