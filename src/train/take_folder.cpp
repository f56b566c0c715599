// SPDX-License-Identifier: Apache-2.0
#include "take_folder.hpp"

#include "tessera/base/error.hpp"
#include "tessera/checkpoint/inspect.hpp"
#include "tessera/comm/agreement.hpp"
#include "tessera/config/recorded.hpp"
#include "tessera/train/batch_plan.hpp"

namespace tessera::train {
namespace {

/// A string without its quotes; empty where there is none.
/// Said before the model is built, in words: what differs in its tensors would only be found then.
void require_same_model(const config::JobConfig& job) {
  if (!job.checkpoint.enable || job.model.hf_config || !job.checkpoint.exclude_from_loading.empty())
    return;
  const std::filesystem::path folder =
      std::filesystem::path(job.job.dump_folder) / job.checkpoint.folder;
  const auto steps = checkpoint::list_steps(folder);
  if (steps.empty()) return;
  std::string toml;
  try {
    toml = checkpoint::summarize(steps.back().path).config_toml;
  } catch (const Error&) {
    return;  // damaged: loading says so, and takes an older one
  }
  const std::string name = config::recorded_text(toml, "model.name"),
                    flavor = shape_flavor(config::recorded_text(toml, "model.flavor"));
  if (config::recorded(toml, "model.hf_config") || name.empty()) return;
  require(name == job.model.name && flavor == shape_flavor(job.model.flavor), ExitCode::usage,
          "{} holds checkpoints of another model: {} {}, and this job trains {} {}; choose another "
          "job.dump_folder, or "
          "train that model",
          folder.string(), name, flavor, job.model.name, job.model.flavor);
}

}  // namespace

std::unique_ptr<metrics::FolderLock> take_folder(comm::Communicator& control,
                                                 const config::JobConfig& job) {
  std::unique_ptr<metrics::FolderLock> lock;
  comm::on_rank_zero(control, [&] {
    lock = std::make_unique<metrics::FolderLock>(job.job.dump_folder);
    require_same_model(job);
    return std::string();
  });
  return lock;
}

}  // namespace tessera::train
