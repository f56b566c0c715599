// SPDX-License-Identifier: Apache-2.0
// How a rank that cannot continue informs the others, and ends without waiting for them.
#pragma once

#include <chrono>
#include <string>

namespace tessera::comm {

/// Tells the other ranks of this node why this one cannot continue; the first cause counts. Ranks
/// that wait for it with compared collectives (set_check_collectives, the strict back end) stop
/// waiting, and report this.
void note_failure(const std::string& cause);
/// Forgets this: for tests, which fail on purpose several times.
void forget_failure() noexcept;
/// What the first rank of this node that has noted a failure said: "rank 3: out of memory"; empty
/// if none has.
std::string failure_on_node();

/// From now on destructors of this process wait for no other rank and for no device: requests are
/// dropped as they are, and communicators are not flushed. For a process that ends because of a
/// failure. This cannot be undone.
void stop_waiting() noexcept;
bool has_stopped_waiting() noexcept;
/// Whether a dropped request may still use memory that its owner has freed: calls of MPI are then
/// no longer safe.
bool has_dropped_transfers() noexcept;

/// Ends all communicators of this process that move device memory, together: NCCL's abort waits for
/// the whole device, so one of them alone would wait for operations of the others. `why` is what
/// later users of them are told. False after `deadline`: then nothing may wait for the device any
/// more, and the process must end without that.
bool abort_device_communicators(const std::string& why, std::chrono::milliseconds deadline);

/// Ends the job with `code` if this process still lives in `patience`: nothing that is torn down
/// may hold it longer. Writes `why` to the standard error before, unless it is empty.
void end_at_the_latest(std::chrono::seconds patience, int code, std::string why = {});

}  // namespace tessera::comm
