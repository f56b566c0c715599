// SPDX-License-Identifier: Apache-2.0
#include "ckpt_folders.hpp"
#include "tessera/checkpoint/checkpoint_reader.hpp"

#include <algorithm>
#include <iostream>

#include "tessera/base/error.hpp"
#include "tessera/base/text_file.hpp"
#include "tessera/config/job_config.hpp"
#include "tessera/config/recorded.hpp"

namespace tessera::app {
namespace {

namespace fs = std::filesystem;

bool is_run(const fs::path& folder) { return fs::exists(folder / "config.toml"); }

bool is_step(const fs::path& folder) {
  return checkpoint::is_step_folder(folder) && fs::is_directory(folder) && !is_run(folder) &&
         checkpoint::list_steps(folder).empty();
}

/// checkpoint.folder of the run in this folder, if it is one.
fs::path folder_in_run(const fs::path& run) {
  const std::string named =
      config::recorded_text(read_text(run / "config.toml").value_or(""), "checkpoint.folder");
  return named.empty() ? config::JobConfig().checkpoint.folder : named;
}

}  // namespace

fs::path checkpoint_folder_of(const std::string& argument) {
  require(!is_step(argument), ExitCode::usage,
          "{} is the folder of one step; name the folder above it", argument);
  std::vector<fs::path> folders{argument, argument / folder_in_run(argument)};
  if (is_run(argument)) std::ranges::reverse(folders);
  for (const fs::path& folder : folders)
    if (fs::is_directory(folder) && !checkpoint::list_steps(folder).empty()) return folder;
  fail(ExitCode::checkpoint,
       "no checkpoint in {} (no step-00000000 folder and no manifest.json); give a run's folder, "
       "its checkpoint folder "
       "or one step's folder",
       argument);
}

std::vector<checkpoint::StepFolder> steps_of(const std::string& argument) {
  if (is_step(argument)) return {{0, argument}};
  return checkpoint::list_steps(checkpoint_folder_of(argument));
}

fs::path newest_of(const std::string& argument) {
  if (is_step(argument)) return argument;
  const auto self = comm::make_self_communicator("checkpoints");
  const auto say = [](const std::string& line) { std::cerr << line << "\n"; };
  return checkpoint::open_newest(*self, checkpoint_folder_of(argument), say).value().folder();
}

void require_target(const fs::path& folder) {
  require(!is_run(folder), ExitCode::usage,
          "{} is the folder of a run; choose another folder for the checkpoint", folder.string());
  require(!fs::exists(folder / "manifest.json"), ExitCode::usage,
          "{} is a checkpoint; choose another folder", folder.string());
}

}  // namespace tessera::app
