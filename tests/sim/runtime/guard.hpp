// SPDX-License-Identifier: Apache-2.0
// Who may touch device memory. Without a guard every thread may. With TESSERA_SIM_GUARD=keys
// threads that opened it, by protection keys (pkeys(7)): a register of each thread, so that opening
// costs nanoseconds. With process none may while no thread has it open, which costs about 60 us for
// each MB at each task.
#pragma once

#include <cstddef>

#include "sim/sim.hpp"

namespace tessera::cudart {

using Guard = sim::Settings::Guard;
/// As the settings say. Ends the program where they ask for keys and the processor has none.
Guard guard();

/// Makes memory readable and writable to threads that opened it. Ends the program where the system
/// refuses.
void grant(std::byte* memory, std::size_t bytes);
/// Makes memory unreadable to all threads.
void revoke(std::byte* memory, std::size_t bytes);

/// Prints a line at each fault in the arena, and then lets the handler act that was there before.
void report_faults();

/// What this thread does to device memory, for reports of faults: a string that outlives the task,
/// or null.
void set_task_name(const char* name);
const char* task_name();

}  // namespace tessera::cudart
