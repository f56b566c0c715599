// SPDX-License-Identifier: Apache-2.0
// The text of a job script, and the files next to it.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "point_files.hpp"
#include "reading.hpp"
#include "tessera/base/atomic_file.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/json.hpp"
#include "tessera/base/shell_words.hpp"
#include "tessera/base/text_file.hpp"
#include "tessera/sweep/local_run.hpp"
#include "tessera/sweep/slurm.hpp"

namespace tessera::sweep {
namespace {

namespace fs = std::filesystem;

std::string absolute_text(const fs::path& path) {
  std::string text = fs::absolute(path).lexically_normal().string();
  while (text.size() > 1 && text.ends_with('/')) text.pop_back();
  return text;
}

/// As sbatch reads a value in the script. `%` would stand for a number of the job there.
std::string sbatch_word(const std::string& text) {
  if (shell_word(text) == text) return text;
  std::string quoted = "\"";
  for (const char c : text)
    quoted += c == '"' || c == '\\' ? fmt::format("\\{}", c) : fmt::format("{}", c);
  return quoted + "\"";
}

std::string sbatch_file_name(const fs::path& folder, std::string_view name) {
  std::string text;
  for (const char c : absolute_text(folder))
    text += c == '%' ? std::string("%%") : std::string(1, c);
  return sbatch_word(fmt::format("{}/{}", text, name));
}

/// The lines for sbatch, which a user may change before the script is submitted again.
std::string options_text(const Sweep& sweep, const Submission& submission) {
  const std::int64_t time = sweep.seconds.value_or(0) * submission.shape.per_task;
  const std::int64_t warning = warning_seconds(time > 0 ? time : 86400);
  const std::string limit = submission.at_once > 0 ? fmt::format("%{}", submission.at_once) : "";
  std::string text =
      fmt::format("#SBATCH --job-name={}\n", sbatch_word(fs::path(sweep.file).stem().string()));
  text += fmt::format("#SBATCH --array=1-{}{}\n#SBATCH --ntasks={}\n", submission.shape.tasks,
                      limit, sweep.ranks);
  if (time > 0) text += fmt::format("#SBATCH --time={}\n", time_text(time));
  for (const auto& [name, value] : sweep.slurm)
    text += value.empty() ? fmt::format("#SBATCH --{}\n", name)
                          : fmt::format("#SBATCH --{}={}\n", name, sbatch_word(value));
  return text + fmt::format(
                    "#SBATCH --output={}\n#SBATCH --open-mode=append\n#SBATCH --requeue\n"
                    "#SBATCH --signal=USR1@{}\n",
                    sbatch_file_name(submission.folder, "task-%a.out"), warning);
}

/// What each task does. Names between @ are replaced.
constexpr std::string_view kBody = R"(set -uo pipefail
cancelled=
trap 'at_end || cancelled=1' TERM    # scancel: the ranks end first, and their exit code is noted

here=@HERE@      # this script, points.list, job.toml and sweep.toml
folder=@FOLDER@  # of the points
tessera=${TESSERA:-@PROGRAM@}
per_task=@PER_TASK@
cd @WHERE@ || exit 3

# The last task of an array has the array's own job ID, so that the task is named by its index.
task=${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID

# Slurm tells the end of the allocation in local time; Tessera plans its last checkpoint from it.
end=$(scontrol show job "$task" | sed -n 's/.* EndTime=\([^ ]*\).*/\1/p')
if [ -n "$end" ] && end=$(date -d "$end" +%s 2>/dev/null); then export TESSERA_JOB_END=$end; else end=; fi

# The time limit ends a task with SIGTERM, as scancel does.
at_end() { [ -n "${end:-}" ] && [ $(date +%s) -ge "$end" ]; }

note() { echo "$1 $(date -u +%Y-%m-%dT%H:%M:%SZ) $2" >>"$point/attempts.log"; }

# Trains the point of one line of points.list; returns the exit code of the ranks.
train() { # NUMBER FLAGS
  local code=0 flags words
  point=$folder/$(printf 'point-%04d' "$1")
  # Done before a requeue. srun also returns 0 where it could not start its ranks: then there is no step.
  if [ -s "$point/metrics.jsonl" ] && tail -n 1 "$point/attempts.log" 2>/dev/null | grep -q '^end .* 0$'; then return 0; fi
  echo "$(date '+%F %T') point $1: $2"
  where="slurm $task on $SLURMD_NODENAME"
  echo "=== attempt $(($(grep -c ^start "$point/attempts.log" 2>/dev/null) + 1)): $where" >>"$point/output.log"
  note start "$where"
  if ! words=$(xargs printf '%s\n' <<<"$2"); then    # xargs takes quotes as a shell does
    printf '\ntessera: points.list: these are no flags: %s\n' "$2" >>"$point/output.log"
    note end 2
    return 2
  fi
  mapfile -t flags <<<"$words"
  # PMIx is what Open MPI speaks; set TESSERA_SRUN_MPI where `srun --mpi=list` offers another one for your MPI.
  # srun does not take --cpus-per-task from the job.
  srun --export=ALL --mpi="${TESSERA_SRUN_MPI:-pmix}" ${SLURM_CPUS_PER_TASK:+--cpus-per-task="$SLURM_CPUS_PER_TASK"} "$tessera" train "$here/job.toml" "${flags[@]}" \
    --job.dump_folder="$point" </dev/null >>"$point/output.log" 2>&1 || code=$?
  note end "$code"
  return "$code"
}

result=0
last=$((SLURM_ARRAY_TASK_ID * per_task))
mapfile -t lines < <(sed -n "$((last - per_task + 1)),${last}p" "$here/points.list")
for line in "${lines[@]}"; do
  [ -z "$cancelled" ] || break
  code=0; train "${line%% *}" "${line#* }" || code=$?
  [ "$code" = 0 ] || result=$code
  [ "$code" != 75 ] || break
done

# 75: the time was up, and everything is saved. TESSERA_REQUEUE=0 leaves the point as it is, and so does scancel.
if [ "$result" = 75 ] && [ -z "$cancelled" ] && [ "${TESSERA_REQUEUE:-1}" = 1 ]; then
  for pause in 5 10 0; do scontrol requeue "$task" && break || sleep $pause; done    # a controller may be busy
fi
exit "$result"
)";

std::string replaced(std::string text, std::string_view name, const std::string& value) {
  const std::size_t at = text.find(name);
  TESSERA_EXPECT(at != text.npos, "the script has no {}", name);
  return text.replace(at, name.size(), value);
}

}  // namespace

ArrayShape array_shape(std::size_t points, int max_array_size) {
  const int most = max_array_size - 1;  // the largest index
  require(most >= 1, ExitCode::environment,
          "MaxArraySize of this Slurm is {}: it allows no job arrays; use --on local",
          max_array_size);
  const int all = static_cast<int>(points), per_task = (all + most - 1) / most;
  return {(all + per_task - 1) / per_task, per_task};
}

std::string script_text(const Sweep& sweep, const Submission& submission) {
  const auto word = [](const fs::path& path) { return shell_words({absolute_text(path)}); };
  std::string text = fmt::format(
      "#!/bin/bash\n# Written by `tessera sweep submit`: {} points of {}, {} in each task of the "
      "array.\n",
      submission.points.size(), shell_words({fs::path(sweep.file).filename().string()}),
      submission.shape.per_task);
  text += options_text(sweep, submission);
  std::string body(kBody);
  body = replaced(body, "@HERE@", word(submission.folder));
  body = replaced(body, "@FOLDER@", word(sweep.folder));
  body = replaced(body, "@PROGRAM@", word(submission.program));
  body = replaced(body, "@PER_TASK@", fmt::format("{}", submission.shape.per_task));
  return text + replaced(body, "@WHERE@", word(fs::current_path()));
}

std::string list_text(const Sweep& sweep, const Submission& submission) {
  std::string text;
  for (const Point& point : submission.points)
    text += fmt::format("{} {}\n", point.number, shell_words(flags(sweep, point)));
  return text;
}

fs::path next_submission(const fs::path& sweep_folder) {
  for (int number = 1;; ++number)
    if (fs::path folder = sweep_folder / "submissions" / std::to_string(number);
        !fs::exists(folder))
      return folder;
}

bool was_submitted(const fs::path& sweep_folder) {
  return next_submission(sweep_folder) != sweep_folder / "submissions" / "1";
}

void write_submission(const Sweep& sweep, const Submission& submission) {
  std::error_code code;
  fs::create_directories(submission.folder, code);
  require(!code, ExitCode::environment, "cannot make the folder {} ({})",
          submission.folder.string(), code.message());
  write_file_atomically(submission.folder / "sweep.sbatch", script_text(sweep, submission));
  write_file_atomically(submission.folder / "points.list", list_text(sweep, submission));
  write_file_atomically(submission.folder / "job.toml", read_text(sweep.job).value_or(""));
  write_file_atomically(submission.folder / "sweep.toml", read_text(sweep.file).value_or(""));
}

void note_job(const Submission& submission, const std::string& job) {
  std::vector<int> numbers;
  for (const Point& point : submission.points) numbers.push_back(point.number);
  const nlohmann::ordered_json note{
      {"job", job}, {"per_task", submission.shape.per_task}, {"points", numbers}};
  write_file_atomically(submission.folder / "submission.json", json_text(note) + "\n");
}

}  // namespace tessera::sweep
