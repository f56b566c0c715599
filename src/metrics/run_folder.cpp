// SPDX-License-Identifier: Apache-2.0
#include "tessera/metrics/run_folder.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <random>
#include <system_error>
#include <utility>

#include "run_files.hpp"
#include "tessera/base/atomic_file.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/json.hpp"
#include "tessera/base/log.hpp"
#include "tessera/base/text_file.hpp"

namespace tessera::metrics {
namespace {

using nlohmann::ordered_json;

std::string utc_now(fmt::format_string<std::tm> pattern) {
  return fmt::format(
      pattern, fmt::gmtime(std::chrono::system_clock::to_time_t(std::chrono::system_clock::now())));
}

ordered_json to_json(const Attempt& attempt) {
  ordered_json versions = ordered_json::object();
  for (const auto& [name, version] : attempt.versions) versions[name] = version;
  return {{"id", attempt.id},
          {"started", attempt.started},
          {"first_step", attempt.first_step},
          {"ranks", attempt.ranks},
          {"mesh", attempt.mesh},
          {"hosts", attempt.hosts},
          {"command_line", attempt.command_line},
          {"versions", versions}};
}

ordered_json new_run() {
  return {{"format", "tessera-run 1"}, {"attempts", ordered_json::array()}};
}

/// What run.json says so far; a file that says nothing is put aside and never stops a run.
ordered_json runs_so_far(const std::filesystem::path& file) {
  const auto text = read_text(file);
  if (!text) return new_run();
  ordered_json run = parse_ordered_json(*text);
  if (run.is_object() && run.contains("attempts") && run["attempts"].is_array()) return run;
  const std::string kept = file.string() + ".damaged";
  rename_durably(file, kept, kRunFiles);
  log::warning("{} is not a valid run.json; it is renamed to {}, and a new one is written",
               file.string(), kept);
  return new_run();
}

void create_folder(const std::filesystem::path& folder) {
  std::error_code code;
  std::filesystem::create_directories(folder, code);
  if (!code && !std::filesystem::is_directory(folder))
    code = std::make_error_code(std::errc::not_a_directory);
  if (code)
    fail(ExitCode::environment,
         "cannot create the run's folder {} ({}); choose another job.dump_folder", folder.string(),
         code.message());
}

/// Permission bits do not suffice (root, access lists, quotas, read-only mounts): writing does.
void try_writing(const std::filesystem::path& folder) {
  const std::filesystem::path probe = folder / fmt::format(".writable-{}", ::getpid());
  try {
    write_text(probe, "tessera\n", kRunFiles);
  } catch (...) {
    std::error_code ignored;
    std::filesystem::remove(probe, ignored);
    throw;
  }
  std::filesystem::remove(probe);
}

}  // namespace

bool is_sweep_folder(const std::filesystem::path& folder) {
  std::error_code ignored;
  return std::filesystem::exists(folder / kSweepFile, ignored);
}

std::string make_attempt_id() {
  return fmt::format("{}-{:08x}", utc_now("{:%Y%m%dT%H%M%SZ}"), std::random_device{}());
}

RunFolder::RunFolder(std::filesystem::path folder) : folder_(std::move(folder)) {
  create_folder(folder_);
  try_writing(folder_);
}

void RunFolder::write_config(std::string_view toml) const {
  write_file_atomically(folder_ / "config.toml", toml, kRunFiles);
}

std::filesystem::path RunFolder::free_metrics_file() const {
  std::error_code ignored;
  std::filesystem::path free;
  for (int number = 1; free.empty() || std::filesystem::exists(free, ignored); ++number)
    free = folder_ / fmt::format("metrics.{}.jsonl", number);
  return free;
}

std::filesystem::path RunFolder::keep_metrics_apart() {
  metrics_ = free_metrics_file().filename();
  return metrics_file();
}

std::filesystem::path RunFolder::set_metrics_aside() const {
  std::error_code error;
  if (const auto bytes = std::filesystem::file_size(metrics_file(), error); error || bytes == 0)
    return {};
  const std::filesystem::path aside = free_metrics_file();
  rename_durably(metrics_file(), aside, kRunFiles);
  return aside;
}

void RunFolder::add_attempt(Attempt attempt) const {
  if (attempt.started.empty()) attempt.started = utc_now("{:%Y-%m-%dT%H:%M:%SZ}");
  const std::filesystem::path file = folder_ / "run.json";
  ordered_json run = runs_so_far(file);
  run["attempts"].push_back(to_json(attempt));
  write_file_atomically(file, json_text(run, 2) + "\n", kRunFiles);
}

}  // namespace tessera::metrics
