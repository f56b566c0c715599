// SPDX-License-Identifier: Apache-2.0
#include "take_folder.hpp"

#include <algorithm>

#include "recorded_model.hpp"
#include "tessera/base/error.hpp"
#include "tessera/checkpoint/inspect.hpp"
#include "tessera/comm/agreement.hpp"
#include "tessera/config/flavor.hpp"
#include "tessera/config/recorded.hpp"

namespace tessera::train {
namespace {

namespace fs = std::filesystem;

void require_same_name(const plan::ModelPlan& model, const fs::path& folder,
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
  const fs::path& folder = plan.load.checkpoints;
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

fs::path without_links(const fs::path& folder) {
  std::error_code ignored;
  const fs::path whole = fs::weakly_canonical(fs::absolute(folder), ignored);
  return whole.has_filename() ? whole : whole.parent_path();
}

bool contains(const fs::path& folder, const fs::path& other) {
  return std::ranges::mismatch(folder, other).in1 == folder.end();
}

/// Of another run, whose checkpoints are this one's, too: a checkpoint folder elsewhere, and a
/// folder around it that has an owner.
std::vector<fs::path> shared_folders(const plan::JobPlan& plan) {
  if (!plan.save.enabled) return {};
  const fs::path run = without_links(plan.run.folder), own = without_links(plan.load.checkpoints);
  if (run.empty() || own.empty()) return {};
  std::vector<fs::path> folders;
  if (own != run && (!contains(run, own) || metrics::FolderLock::is_owned(own)))
    folders.push_back(own);
  for (fs::path above = own.parent_path(); !contains(above, run); above = above.parent_path())
    if (metrics::FolderLock::is_owned(above)) folders.push_back(above);
  std::ranges::reverse(folders);
  return folders;
}

}  // namespace

FolderLocks take_folders(comm::Communicator& control, const plan::JobPlan& plan) {
  FolderLocks locks;
  comm::on_rank_zero(control, [&] {
    locks.push_back(std::make_unique<metrics::FolderLock>(plan.run.folder));
    require_same_model(plan);
    for (const fs::path& folder : shared_folders(plan))
      locks.push_back(std::make_unique<metrics::FolderLock>(folder, "checkpoint.folder"));
    return std::string();
  });
  return locks;
}

}  // namespace tessera::train
