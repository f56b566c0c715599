// SPDX-License-Identifier: Apache-2.0
// A job whose files are found from any folder.
#include <filesystem>

#include "tessera/config/resolve.hpp"

namespace tessera::config {
namespace {

void make_absolute(std::string& path) {
  if (!path.empty()) path = std::filesystem::absolute(path).lexically_normal().string();
}

void make_absolute(std::optional<std::string>& path) {
  if (path) make_absolute(*path);
}

}  // namespace

Resolved Resolved::with_absolute_paths() const {
  Resolved result = *this;
  JobConfig& j = result.job;
  make_absolute(j.job.dump_folder);
  if (j.job.machine && j.job.machine->ends_with(".toml")) make_absolute(*j.job.machine);
  for (auto* path :
       {&j.model.tokenizer_path, &j.model.hf_config, &j.training.dataset_path,
        &j.training.tokens_cache, &j.validation.dataset_path, &j.checkpoint.initial_load_path})
    make_absolute(*path);
  make_absolute(j.parallelism.pipeline_parallel_schedule_csv);
  for (Strings& source : j.training.mixture)
    if (!source.empty()) make_absolute(source.front());
  if (origin("model.hf_assets_path") != "default") make_absolute(j.model.hf_assets_path);
  return result;
}

}  // namespace tessera::config
