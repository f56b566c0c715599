// SPDX-License-Identifier: Apache-2.0
// The beginning of a run: its folder is taken before anything is written or allocated.
#pragma once

#include <memory>

#include "tessera/comm/communicator.hpp"
#include "tessera/metrics/folder_lock.hpp"
#include "tessera/plan/job_plan.hpp"

namespace tessera::train {

/// Collective: rank 0 gets the lock of job.dump_folder, others null. Throws, on all ranks, where
/// another job owns the folder, it is not writable, or its checkpoints are of another model.
std::unique_ptr<metrics::FolderLock> take_folder(comm::Communicator& control,
                                                 const plan::JobPlan& plan);

}  // namespace tessera::train
