// SPDX-License-Identifier: Apache-2.0
#include "sweep_folder.hpp"

#include "tessera/base/error.hpp"
#include "tessera/base/log.hpp"
#include "tessera/metrics/run_folder.hpp"
#include "tessera/sweep/slurm.hpp"

namespace tessera::app {

sweep::Sweep sweep_named(const std::string& file_or_folder) {
  if (!std::filesystem::is_directory(file_or_folder)) return sweep::read_sweep(file_or_folder);
  std::filesystem::path folder = sweep::folder_named(file_or_folder).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();  // it ends with a slash
  sweep::Sweep sweep = sweep::read_sweep(sweep::sweep_file_of(folder));
  sweep.folder = folder.string();
  return sweep;
}

std::vector<sweep::PointStatus> statuses_in(const std::filesystem::path& folder, bool to_start) {
  if (!metrics::is_sweep_folder(folder)) return {};
  std::vector<sweep::PointStatus> statuses = sweep::read_statuses(folder);
  if (sweep::add_queue_states(folder, statuses)) return statuses;
  require(!to_start, ExitCode::environment,
          "squeue gives no answer, and points of {} may be queued; try again later",
          folder.string());
  log::warning("squeue gives no answer: points that are queued are shown as missing");
  return statuses;
}

std::vector<sweep::PointStatus> statuses_of(const std::string& file_or_folder) {
  std::vector<sweep::PointStatus> statuses =
      statuses_in(sweep::folder_named(file_or_folder), false);
  if (std::filesystem::is_directory(file_or_folder)) return statuses;
  const sweep::Sweep sweep = sweep::read_sweep(file_or_folder);
  sweep::refuse_another_sweep(sweep, statuses);
  sweep::add_missing(sweep, statuses);
  return statuses;
}

}  // namespace tessera::app
