// SPDX-License-Identifier: Apache-2.0
// Slurm's commands, and what they know of a sweep.
#include "tessera/sweep/slurm.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "point_files.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/json_reader.hpp"
#include "tessera/base/shell_words.hpp"
#include "tessera/base/text_file.hpp"

namespace tessera::sweep {
namespace {

namespace fs = std::filesystem;

struct Answer {
  int code = 0;
  std::string text;  ///< standard output, and standard error where it was asked for
};

/// Runs a command of Slurm. A controller that does not answer must not hold up a user who looks at
/// a sweep.
Answer ask(const std::vector<std::string>& command, bool errors_too = false) {
  const std::string line =
      fmt::format("timeout 20 {} 2>{}", shell_words(command), errors_too ? "&1" : "/dev/null");
  Answer answer;
  std::FILE* pipe = popen(line.c_str(), "r");
  require(pipe != nullptr, ExitCode::environment, "cannot start a process for {}", command.front());
  std::array<char, 4096> part;
  for (std::size_t bytes; (bytes = std::fread(part.data(), 1, part.size(), pipe)) > 0;)
    answer.text.append(part.data(), bytes);
  const int status = pclose(pipe);
  answer.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  while (answer.text.ends_with('\n')) answer.text.pop_back();
  return answer;
}

void require_answer(const Answer& answer, const char* command) {
  require(answer.code != 127, ExitCode::environment,
          "{} is not installed here; use --on local, or a machine with Slurm", command);
  require(answer.code != 124, ExitCode::environment,
          "{} gave no answer in 20 s; Slurm's controller may be down", command);
  require(answer.code == 0, ExitCode::environment, "{} failed: {}", command, answer.text);
}

/// "12_3" -> state, of this user's array tasks. None where there is no squeue, and nothing where it
/// fails.
std::optional<std::map<std::string, std::string>> queue() {
  const Answer answer = ask({"squeue", "-h", "-r", "-u", std::to_string(getuid()), "-o", "%i %T"});
  std::map<std::string, std::string> tasks;
  if (answer.code == 127) return tasks;
  if (answer.code != 0) return {};
  std::istringstream lines(answer.text);
  for (std::string task, state; lines >> task >> state;) tasks[task] = state;
  return tasks;
}

/// Adds which task runs each point of a submission. sbatch has not answered one without a note.
void add_tasks(const fs::path& file, std::map<int, std::string>& tasks) {
  constexpr int kMost = std::numeric_limits<int>::max();
  const auto text = read_text(file);
  if (!text) return;
  const TextSource source{file, ExitCode::data};
  try {
    const nlohmann::json json = parse_json(*text, source);
    const JsonNode note(json, source), points = note["points"];
    const std::string& job = note["job"].string();
    const auto per_task = static_cast<std::size_t>(note["per_task"].integer(1, kMost));
    points.array();
    for (std::size_t i = 0; i < points.size(); ++i)
      tasks[static_cast<int>(points[i].integer(1, kMost))] =
          fmt::format("{}_{}", job, i / per_task + 1);
  } catch (const Error&) {
    fail(ExitCode::data, "{} is damaged; remove it, and tasks of that submission are not looked up",
         file.string());
  }
}

/// Which task runs a point, by the point's number; of several submissions the last. Throws
/// Error(data) for a note that is damaged.
std::map<int, std::string> tasks_of(const fs::path& sweep_folder) {
  std::map<int, std::string> tasks;
  for (int number = 1;; ++number) {
    const fs::path folder = sweep_folder / "submissions" / std::to_string(number);
    if (!fs::exists(folder)) return tasks;
    add_tasks(folder / "submission.json", tasks);
  }
}

void set(PointStatus& point, State state, std::string reason) {
  point.state = state;
  set_reason(point, std::move(reason));
}

/// `state`: of the point's task in the queue; null where it is not there, and only the folder is
/// known.
void judge_with_queue(PointStatus& point, const std::string& task, const std::string* state) {
  if (point.state == State::done) return;
  const std::string place = fmt::format("slurm {}", task);
  const Attempts attempts = read_attempts(point.folder);
  const bool in_this_task = attempts.where.starts_with(place + " ");
  const bool open = attempts.count > 0 && !attempts.code;
  if (state && *state == "PENDING") return set(point, State::queued, place);
  if (state && in_this_task && open) return set(point, State::running, attempts.where);
  if (state && !in_this_task)
    return set(point, State::queued, place);  // the task is at another of its points
}

/// The states that Slurm's accounting has for points that ended without an exit code.
void ask_accounting(std::vector<PointStatus>& points, const std::map<int, std::string>& tasks) {
  std::vector<std::string> lost;
  for (const PointStatus& point : points)
    if (point.state == State::failed && !point.code && tasks.contains(point.number))
      lost.push_back(tasks.at(point.number));
  if (lost.empty()) return;
  const Answer answer = ask({"sacct", "-n", "-X", "-P", "-j",
                             fmt::format("{}", fmt::join(lost, ",")), "-o", "JobID,State"});
  std::istringstream lines(answer.code == 0 ? answer.text : "");
  for (std::string line; std::getline(lines, line);)
    for (PointStatus& point : points)
      if (point.state == State::failed && !point.code && tasks.contains(point.number) &&
          line.starts_with(tasks.at(point.number) + "|"))
        point.reason += fmt::format("; Slurm: {}", line.substr(line.find('|') + 1));
}

}  // namespace

int max_array_size() {
  const Answer answer = ask({"scontrol", "show", "config"}, true);
  require_answer(answer, "scontrol");
  const std::size_t at = answer.text.find("MaxArraySize");
  const std::size_t equals = at == answer.text.npos ? at : answer.text.find('=', at);
  require(equals != answer.text.npos, ExitCode::environment,
          "scontrol show config does not print MaxArraySize");
  return std::atoi(answer.text.c_str() + equals + 1);
}

std::string submit_script(const fs::path& script) {
  const Answer answer = ask({"sbatch", "--parsable", script.string()}, true);
  require_answer(answer, "sbatch");
  // Warnings may precede it; a cluster's name may follow.
  const std::string last = answer.text.substr(answer.text.rfind('\n') + 1);
  std::string job = last.substr(0, last.find(';'));
  require(!job.empty() && job.find_first_not_of("0123456789") == job.npos, ExitCode::environment,
          "sbatch printed no job ID, but: {}", answer.text);
  return job;
}

bool add_queue_states(const fs::path& sweep_folder, std::vector<PointStatus>& points) {
  const std::map<int, std::string> tasks = tasks_of(sweep_folder);
  if (tasks.empty()) return true;
  const auto states = queue();
  if (!states) return false;
  for (PointStatus& point : points) {
    const auto task = tasks.find(point.number);
    if (task == tasks.end()) continue;
    const auto state = states->find(task->second);
    judge_with_queue(point, task->second, state == states->end() ? nullptr : &state->second);
  }
  ask_accounting(points, tasks);
  return true;
}

}  // namespace tessera::sweep
