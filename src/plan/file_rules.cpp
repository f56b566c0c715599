// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <filesystem>

#include "key_rules.hpp"
#include "rules.hpp"
#include "tessera/metrics/run_folder.hpp"

namespace tessera::plan {
namespace {

constexpr const char* kSaved = "job.save_config_file";
constexpr std::array kOfTheRun{"config.toml",         "machine.toml", "run.json", "prediction.json",
                               metrics::kMetricsFile, "index.html",   "loss.svg"};

/// The stored configuration replaces no file that the run or its user has.
class FileRules : Rules {
 public:
  using Rules::Rules;

  void all() {
    if (!job_.job.save_config_file) return;
    const std::filesystem::path name = *job_.job.save_config_file;
    const bool within = !name.empty() && name.is_relative() &&
                        std::ranges::find(name, std::filesystem::path("..")) == name.end();
    if (!within)
      wrong({kSaved}, "'{}' is not the name of a file in job.dump_folder", name.string());
    if (std::ranges::find(kOfTheRun, name.lexically_normal().string()) != kOfTheRun.end())
      wrong({kSaved}, "'{}' is a file of the run; choose another name", name.string());
    check_job_file(std::filesystem::path(job_.job.dump_folder) / name);
  }

 private:
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
