// SPDX-License-Identifier: Apache-2.0
#include "folder_owner.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tessera/base/host_name.hpp"
#include "tessera/base/json.hpp"
#include "tessera/base/text_file.hpp"
#include "tessera/metrics/run_folder.hpp"

namespace tessera::metrics {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// Ticks since boot at which a process began; empty where it is gone, or dead and only not yet
/// reaped.
std::optional<std::int64_t> start_of(std::int64_t pid) {
  const auto stat = read_text(fmt::format("/proc/{}/stat", pid));
  // the name may hold anything
  const std::size_t name_end = stat ? stat->rfind(')') : std::string::npos;
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(stat->substr(name_end + 1));
  std::string state, field;
  fields >> state;
  for (int i = 0; i < 18; ++i) fields >> field;
  std::int64_t start = 0;
  if (!(fields >> start) || state == "Z" || state == "X") return std::nullopt;
  return start;
}

std::string this_machine() {
  std::string boot = read_text("/proc/sys/kernel/random/boot_id").value_or("");
  boot.erase(boot.find_last_not_of('\n') + 1);
  std::error_code ignored;
  return boot + " " + std::filesystem::read_symlink("/proc/self/ns/pid", ignored).string();
}

std::string string_in(const nlohmann::json& json, const char* key) {
  return json.is_object() && json.contains(key) && json[key].is_string()
             ? json[key].get<std::string>()
             : "";
}

std::int64_t integer_in(const nlohmann::json& json, const char* key) {
  return json.is_object() && json.contains(key) && json[key].is_number_integer()
             ? json[key].get<std::int64_t>()
             : 0;
}

}  // namespace

FolderOwner FolderOwner::this_process() {
  const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  return {.token = make_attempt_id(),
          .host = host_name(),
          .machine = this_machine(),
          .pid = ::getpid(),
          .process_start = start_of(::getpid()).value_or(0),
          .since = fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", fmt::gmtime(now)),
          .slurm_job = variable("SLURM_JOB_ID"),
          .slurm_restart = std::atoi(variable("SLURM_RESTART_COUNT").c_str())};
}

FolderOwner FolderOwner::parse(std::string_view text) {
  const nlohmann::json json = parse_json(text);
  return {.token = string_in(json, "token"),
          .host = string_in(json, "host"),
          .machine = string_in(json, "machine"),
          .pid = integer_in(json, "pid"),
          .process_start = integer_in(json, "process_start"),
          .since = string_in(json, "since"),
          .slurm_job = string_in(json, "slurm_job"),
          .slurm_restart = integer_in(json, "slurm_restart")};
}

std::string FolderOwner::text() const {
  const nlohmann::ordered_json json{{"token", token},         {"host", host},
                                    {"machine", machine},     {"pid", pid},
                                    {"since", since},         {"process_start", process_start},
                                    {"slurm_job", slurm_job}, {"slurm_restart", slurm_restart}};
  return json_text(json) + "\n";
}

std::string FolderOwner::description() const {
  if (host.empty()) return "its owner is not known";
  return fmt::format("host {}, pid {}, since {}{}", host, pid, since,
                     slurm_job.empty() ? "" : ", Slurm job " + slurm_job);
}

std::optional<bool> is_running(const FolderOwner& owner, const FolderOwner& here) {
  // Slurm starts a job again only when nothing of it runs any more.
  if (!here.slurm_job.empty() && owner.slurm_job == here.slurm_job &&
      owner.slurm_restart < here.slurm_restart)
    return false;
  if (owner.machine.empty() || owner.machine != here.machine || owner.pid <= 0) return std::nullopt;
  return start_of(owner.pid) == owner.process_start;
}

}  // namespace tessera::metrics
