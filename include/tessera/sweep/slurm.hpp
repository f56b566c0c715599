// SPDX-License-Identifier: Apache-2.0
// A sweep as one array job of Slurm.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tessera/sweep/point_folder.hpp"

namespace tessera::sweep {

/// Array tasks and the points that each runs, one after the other: task t has points [(t - 1) *
/// per_task, t * per_task).
struct ArrayShape {
  int tasks = 0, per_task = 1;
};
/// One point a task, or as few as an array with indices below `max_array_size` allows. Throws
/// Error(environment) where that allows no array.
ArrayShape array_shape(std::size_t points, int max_array_size);

/// An array job before it is submitted: every file that its tasks read is in one folder.
struct Submission {
  std::filesystem::path folder;  ///< FOLDER/submissions/N
  std::vector<Point> points;
  ArrayShape shape;
  int at_once = 0;      ///< 0: as many as Slurm starts
  std::string program;  ///< absolute path of tessera
};

/// The job script, with absolute paths.
std::string script_text(const Sweep& sweep, const Submission& submission);
/// One line a point: number and flags, as the script reads them.
std::string list_text(const Sweep& sweep, const Submission& submission);
/// The first folder FOLDER/submissions/N that is not there.
std::filesystem::path next_submission(const std::filesystem::path& sweep_folder);
/// Whether a submission is there, so that points ran under Slurm before.
bool was_submitted(const std::filesystem::path& sweep_folder);
/// Writes sweep.sbatch, points.list, job.toml and sweep.toml.
void write_submission(const Sweep& sweep, const Submission& submission);
/// Notes the array's job ID next to its script, for status.
void note_job(const Submission& submission, const std::string& job);

/// Slurm's commands. Throw Error(environment) where Slurm does not answer; in 20 s at most.
int max_array_size();
std::string submit_script(const std::filesystem::path& script);  ///< the job ID

/// Adds to statuses read from the folders what squeue and sacct know of the submissions. Returns
/// false, and leaves them as they are, where squeue is installed and fails: points may be queued.
bool add_queue_states(const std::filesystem::path& sweep_folder, std::vector<PointStatus>& points);

}  // namespace tessera::sweep
