// SPDX-License-Identifier: Apache-2.0
// What a job does about ranks that hang.
#pragma once

#include <functional>
#include <optional>

#include "tessera/comm/world.hpp"
#include "tessera/plan/execution_plan.hpp"

namespace tessera::train {

/// Watches calls of communication from now on, with this limit instead of that of an earlier
/// watchdog. A call that is pending for 45 s is reported in one line that names the rank that holds
/// it up. At the limit, the job ends on all ranks with code 7; if a device or a communicator fails,
/// with the code of that. Before that, the ranks of all nodes leave their last calls in
/// job.dump_folder/comm.save_traces_folder. `look`: see Watchdog::Also. What is given must outlive
/// the watchdog.
void watch_for_hangs(std::optional<comm::Watchdog>& watchdog, comm::World& world,
                     const plan::CommPlan& plan, std::int64_t limit_seconds,
                     std::function<std::optional<Error>()> look = {});

}  // namespace tessera::train
