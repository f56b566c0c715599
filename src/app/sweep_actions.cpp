// SPDX-License-Identifier: Apache-2.0
#include "sweep_actions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>

#include "node_cores.hpp"
#include "sweep_folder.hpp"
#include "tessera/base/log.hpp"
#include "tessera/base/shell_words.hpp"
#include "tessera/base/text_file.hpp"
#include "tessera/config/resolve.hpp"
#include "tessera/inputs/job_check.hpp"
#include "tessera/sweep/local_run.hpp"
#include "tessera/sweep/results.hpp"
#include "tessera/sweep/slurm.hpp"
#include "this_program.hpp"

namespace tessera::app {
namespace {

constexpr int kSomeFailed = 1;

/// Says what `tessera train` would refuse about a point of `sweep`, but for missing files, which
/// stop that point alone when it starts. The checks of all points share what they know.
sweep::JobCheck check_of(const sweep::Sweep& sweep) {
  const auto known = std::make_shared<inputs::JobCheck>(inputs::JobCheck::Files::ignored);
  return [known, ranks = sweep.ranks](const Args& train_arguments) {
    config::Reading job = config::read_job(train_arguments);
    known->find_problems(job, ranks);
    return job.problems.empty() ? std::string() : config::message_of(job.problems);
  };
}

/// Refuses files that no point can do without: what `tessera train` says of them.
void check_files(const sweep::Sweep& sweep, const std::vector<sweep::Point>& points,
                 const SweepRequest& request) {
  if (request.no_files) return;
  inputs::JobCheck known(inputs::JobCheck::Files::looked_at);
  sweep::check_common_files(sweep, points, [&](const Args& train_arguments) {
    config::Reading job = config::read_job(train_arguments);
    known.find_problems(job, sweep.ranks);
    std::vector<sweep::FileProblem> found;
    for (const config::Problem& problem : job.problems)
      found.push_back({config::message_of({problem}), problem.code});
    return found;
  });
}

/// Points that are to start now; says how many do not.
std::vector<sweep::Point> points_to_start(const std::vector<sweep::Point>& points,
                                          const std::vector<sweep::PointStatus>& statuses,
                                          bool only_failed) {
  using sweep::State;
  std::map<int, State> states;
  for (const sweep::PointStatus& status : statuses) states[status.number] = status.state;
  std::map<State, int> skipped;
  std::vector<sweep::Point> chosen;
  for (const sweep::Point& point : points) {
    const auto known = states.find(point.number);
    const State state = known == states.end() ? State::missing : known->second;
    const bool idle = state != State::done && state != State::running && state != State::queued;
    if (only_failed ? state == State::failed : idle)
      chosen.push_back(point);
    else
      ++skipped[state];
  }
  std::string text;
  for (const auto& [state, count] : skipped)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, name_of(state));
  if (!text.empty()) std::cout << fmt::format("skipped: {}\n", text);
  return chosen;
}

std::string what_is_left(const std::vector<sweep::PointStatus>& statuses,
                         const std::string& folder) {
  const auto busy = std::ranges::count_if(statuses, [](const sweep::PointStatus& point) {
    return point.state == sweep::State::running || point.state == sweep::State::queued;
  });
  if (busy == 0) return "nothing is left to start\n";
  return fmt::format(
      "nothing to start now: {} point{} still running or queued elsewhere\n"
      "next: tessera sweep status {}\n",
      busy, busy == 1 ? " is" : "s are", shell_word(folder));
}

/// As a user would type it, but for the program's path: ranks of several launches must not be bound
/// to the same cores.
std::vector<std::string> launch_command(const std::string& program, const sweep::Sweep& sweep,
                                        const sweep::Point& point, int at_once) {
  std::vector<std::string> command{program, "launch", "-n", std::to_string(sweep.ranks)};
  if (at_once > 1) command.insert(command.end(), {"--bind-to", "none"});
  command.insert(command.end(), {"--", "train"});
  std::ranges::copy(sweep::train_arguments(sweep, point), std::back_inserter(command));
  return command;
}

/// Ranks of all points share the cores of this machine.
void share_cores(std::int64_t ranks) {
  const Cores cores = usable_cores();
  setenv("OMP_NUM_THREADS",
         std::to_string(std::max<std::int64_t>(1, cores.threads / ranks)).c_str(), 0);
  if (ranks > cores.physical) setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
}

std::string line_of(const sweep::PointStatus& point, std::size_t ended, std::size_t all) {
  std::string settings;
  for (const auto& [key, value] : point.values)
    settings += fmt::format(" {}={}", key, sweep::text_of(value));
  return fmt::format("[{}/{}] {} {}{}, step {}/{}:{}{}\n", ended, all,
                     sweep::point_name(point.number), name_of(point.state),
                     point.state == sweep::State::failed ? fmt::format(" ({})", *point.code) : "",
                     point.step, point.steps, settings,
                     point.reason.empty() ? "" : "\n    " + point.reason);
}

int run_here(sweep::Sweep sweep, const std::vector<sweep::Point>& all,
             const std::vector<sweep::Point>& points, const SweepRequest& request) {
  const int that_fit = std::max(1, usable_cores().physical / sweep.ranks);
  const int at_once = request.at_once.value_or(sweep.at_once.value_or(that_fit));
  for (const sweep::Point& point : points)
    if (request.dry_run)
      std::cout << shell_words(launch_command("tessera", sweep, point, at_once)) << '\n';
  if (request.dry_run) return 0;
  sweep::prepare(sweep, all);
  sweep.job = (std::filesystem::path(sweep.folder) / "job.toml").string();
  std::cout << fmt::format("starting {} of {} points, {} at once; Ctrl-C saves and stops them\n",
                           points.size(), all.size(), at_once)
            << std::flush;
  const std::string program = this_program();
  std::vector<sweep::LocalJob> jobs;
  for (const sweep::Point& point : points)
    jobs.push_back({point.number,
                    std::filesystem::path(sweep.folder) / sweep::point_name(point.number),
                    launch_command(program, sweep, point, at_once),
                    config::resolve(sweep::train_arguments(sweep, point)).job.checkpoint.enable});
  share_cores(std::int64_t{at_once} * sweep.ranks);
  bool failed = false;
  const auto started = [](const sweep::LocalJob& job) {
    std::cout << fmt::format("{} starts; its output: {}\n", sweep::point_name(job.number),
                             (job.folder / "output.log").string())
              << std::flush;
  };
  const auto ended = [&](const sweep::LocalJob& job, std::size_t count) {
    const sweep::PointStatus point = sweep::read_status(job.folder);
    failed |= point.state == sweep::State::failed;
    std::cout << line_of(point, count, jobs.size()) << std::flush;
  };
  const auto skipped = [](const sweep::LocalJob& job, sweep::State state) {
    std::cout << fmt::format("{} {}; skipped\n", sweep::point_name(job.number),
                             state == sweep::State::done ? "is done already" : "runs elsewhere")
              << std::flush;
  };
  const bool stopped = sweep::run_local(jobs, {at_once, sweep.seconds}, {started, ended, skipped});
  std::cout << fmt::format("{}\nnext: tessera sweep collect {}\n",
                           summary(sweep::read_statuses(sweep.folder)), shell_word(sweep.folder));
  if (stopped) return static_cast<int>(ExitCode::requeue);
  return failed ? kSomeFailed : 0;
}

/// What --dry-run takes where no Slurm answers: Slurm's own default.
constexpr int kUsualArraySize = 1001;

int size_of_arrays(bool dry_run) try {
  return sweep::max_array_size();
} catch (const Error& error) {
  if (!dry_run) throw;
  log::warning("{}; assuming MaxArraySize = {}", error.what(), kUsualArraySize);
  return kUsualArraySize;
}

int submit(const sweep::Sweep& sweep, const std::vector<sweep::Point>& all,
           const std::vector<sweep::Point>& points, const SweepRequest& request) {
  const sweep::Submission submission{
      sweep::next_submission(sweep.folder), points,
      sweep::array_shape(points.size(), size_of_arrays(request.dry_run)),
      request.at_once.value_or(sweep.at_once.value_or(0)), this_program()};
  const std::filesystem::path script = submission.folder / "sweep.sbatch";
  if (request.dry_run) {
    std::cout << fmt::format("--- {}\n{}--- {}\n{}--- then: sbatch {}\n", script.string(),
                             sweep::script_text(sweep, submission),
                             (submission.folder / "points.list").string(),
                             sweep::list_text(sweep, submission), script.string());
    return 0;
  }
  sweep::prepare(sweep, all);
  sweep::write_submission(sweep, submission);
  std::string job;
  try {
    job = sweep::submit_script(script);
  } catch (const Error& error) {
    std::filesystem::remove_all(submission.folder);
    std::error_code has_others;
    std::filesystem::remove(submission.folder.parent_path(), has_others);
    throw;
  }
  sweep::note_job(submission, job);
  std::cout << fmt::format(
      "submitted {}: array job {}, {} tasks for {} points\nnext: tessera sweep status {}\n",
      script.string(), job, submission.shape.tasks, points.size(), shell_word(sweep.folder));
  return 0;
}

/// Where points are to run: as asked for, else as they ran before.
bool on_slurm(const SweepRequest& request, const sweep::Sweep& sweep) {
  require(request.on.empty() || request.on == "slurm" || request.on == "local", ExitCode::usage,
          "--on must be slurm or local, not {}", request.on);
  return request.on.empty() ? sweep::was_submitted(sweep.folder) : request.on == "slurm";
}

}  // namespace

int expand_sweep(const SweepRequest& request) {
  const sweep::Sweep sweep = sweep::read_sweep(request.file);
  const std::vector<sweep::Point> points = sweep::points(sweep);
  (request.lines ? std::cerr : std::cout) << sweep::overview(sweep, points.size());
  sweep::check_points(sweep, points, check_of(sweep));
  if (!request.lines) std::cout << '\n' << sweep::table(points) << std::flush;
  check_files(sweep, points, request);
  for (const sweep::Point& point : points)
    if (request.lines) std::cout << shell_words(sweep::flags(sweep, point)) << '\n';
  return 0;
}

int start_sweep(const SweepRequest& request) {
  const sweep::Sweep sweep = sweep_named(request.file);
  const bool slurm = on_slurm(request, sweep);
  const std::vector<sweep::Point> all = sweep::points(sweep);
  std::cout << sweep::overview(sweep, all.size());
  sweep::check_points(sweep, all, check_of(sweep));
  const std::vector<sweep::PointStatus> statuses = statuses_in(sweep.folder, !request.dry_run);
  sweep::refuse_another_sweep(sweep, statuses);
  const std::vector<sweep::Point> points = points_to_start(all, statuses, request.only_failed);
  if (points.empty()) {
    std::cout << what_is_left(statuses, sweep.folder);
    return 0;
  }
  check_files(sweep, all, request);
  return slurm ? submit(sweep, all, points, request) : run_here(sweep, all, points, request);
}

int show_sweep(const SweepRequest& request) {
  const std::vector<sweep::PointStatus> points = statuses_of(request.file);
  std::cout << status_table(points) << summary(points) << '\n';
  const auto done = [](const sweep::PointStatus& point) {
    return point.state == sweep::State::done;
  };
  return std::ranges::all_of(points, done) ? 0 : kSomeFailed;
}

int collect_sweep(const SweepRequest& request) {
  require(request.heat.empty() || request.heat.size() == 2, ExitCode::usage,
          "--heat needs two keys, such as --heat optimizer.lr,training.seq_len");
  const std::filesystem::path folder = sweep::folder_named(request.file);
  const std::string file = sweep::sweep_file_of(folder);
  const sweep::Results results = sweep::collect(statuses_of(request.file), request.by);
  sweep::write_results(folder, results,
                       {std::filesystem::path(file).stem().string(), read_text(file).value_or(""),
                        read_text(folder / "job.toml").value_or(""), request.heat});
  constexpr std::size_t kShown = 10;
  std::vector<sweep::PointStatus> points;
  for (const sweep::PointResult& result : results.points) points.push_back(result.status);
  std::cout << results_table(results, kShown);
  if (results.points.size() > kShown)
    std::cout << fmt::format("... and {} more\n", results.points.size() - kShown);
  if (any_skipped(results)) std::cout << sweep::kSkippedNote << '\n';
  std::cout << fmt::format("{}\n", summary(points));
  for (const char* name : {"results.csv", "results.json", "index.html"})
    std::cout << (folder / name).string() << '\n';
  return 0;
}

}  // namespace tessera::app
