// SPDX-License-Identifier: Apache-2.0
#include "folder_job.hpp"

#include "tessera/base/error.hpp"
#include "tessera/hf/folder.hpp"

namespace tessera::app {

std::vector<std::string> job_of_folder(const std::filesystem::path& folder) {
  const std::string config = (folder / "config.toml").string(), path = folder.string();
  if (std::filesystem::exists(config)) return {config, "--job.dump_folder", path};
  require(hf::holds_weights(folder), ExitCode::usage,
          "{} is neither the folder of a run (it has no config.toml) nor a folder of Hugging Face "
          "weights",
          path);
  return {"--model.hf_config",
          (folder / "config.json").string(),
          "--model.hf_assets_path",
          path,
          "--checkpoint.initial_load_path",
          path,
          "--checkpoint.initial_load_in_hf"};
}

}  // namespace tessera::app
