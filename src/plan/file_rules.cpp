// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <filesystem>

#include "key_rules.hpp"
#include "rules.hpp"

namespace tessera::plan {
namespace {

constexpr const char* kSaved = "job.save_config_file";
constexpr std::array kOfTheRun{"config.toml", "machine.toml", "run.json", "prediction.json",
                               "index.html",  "loss.svg",     "tokens",   "faults"};

/// Metrics, pictures and locks of the run, and those of its older attempts.
bool is_of_the_run(const std::string& name) {
  return std::ranges::find(kOfTheRun, name) != kOfTheRun.end() || name.starts_with('.') ||
         name.starts_with("metrics.") || name.ends_with(".svg") || name == "sample.txt";
}

/// The stored configuration replaces no file that the run has.
class FileRules : Rules {
 public:
  using Rules::Rules;

  void all() {
    if (!job_.job.save_config_file) return;
    const std::filesystem::path name = *job_.job.save_config_file;
    const std::filesystem::path plain = name.lexically_normal();
    const bool within = plain.has_filename() && plain != "." && name.is_relative() &&
                        std::ranges::find(name, std::filesystem::path("..")) == name.end();
    if (!within)
      return wrong({kSaved}, "'{}' is not the name of a file in job.dump_folder", name.string());
    if (is_of_the_run(plain.begin()->string()) || is_folder_of_the_run(plain))
      wrong({kSaved}, "'{}' is a file or folder of the run; choose another name", name.string());
    check_job_file(std::filesystem::path(job_.job.dump_folder) / name);
  }

 private:
  /// Or a folder that is there.
  bool is_folder_of_the_run(const std::filesystem::path& name) const {
    std::error_code ignored;
    const auto meets = [&](const std::string& named) {
      std::filesystem::path folder = std::filesystem::path(named).lexically_normal();
      if (!folder.has_filename()) folder = folder.parent_path();
      const auto [a, b] = std::ranges::mismatch(folder, name);
      return a == folder.end() || b == name.end();
    };
    const std::array folders{job_.checkpoint.folder, job_.comm.save_traces_folder,
                             job_.metrics.save_tb_folder, job_.profiling.save_traces_folder,
                             job_.profiling.save_memory_snapshot_folder};
    return std::filesystem::is_directory(job_.job.dump_folder / name, ignored) ||
           std::ranges::any_of(folders, [&](const std::string& folder) {
             return !folder.empty() && folder != "." && meets(folder);
           });
  }

  void check_job_file(const std::filesystem::path& saved) {
    std::error_code ignored;
    const auto is_saved = [&](const auto& written) {
      return written.second.in_file() &&
             std::filesystem::equivalent(saved, written.second.label, ignored);
    };
    if (std::ranges::any_of(reading_.places, is_saved))
      wrong({kSaved, "job.dump_folder"}, "'{}' is the job file itself; choose another name",
            saved.string());
  }
};

}  // namespace

void check_file_keys(config::Reading& job) { FileRules(job).all(); }

}  // namespace tessera::plan
