// SPDX-License-Identifier: Apache-2.0
// The beginning of a run: its folder is taken before anything is written or allocated.
#pragma once

#include <memory>
#include <vector>

#include "tessera/comm/communicator.hpp"
#include "tessera/metrics/folder_lock.hpp"
#include "tessera/plan/job_plan.hpp"

namespace tessera::train {

using FolderLocks = std::vector<std::unique_ptr<metrics::FolderLock>>;

/// Collective: rank 0 gets the lock of job.dump_folder, and that of a checkpoint folder elsewhere;
/// others get none. Throws, on all ranks, where another job owns a folder, it is not writable, or
/// its checkpoints are of another model.
FolderLocks take_folders(comm::Communicator& control, const plan::JobPlan& plan);

}  // namespace tessera::train
