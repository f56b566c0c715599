// SPDX-License-Identifier: Apache-2.0
// What operations over MPI report to failure.cpp.
#pragma once

namespace tessera::comm {

/// An operation was dropped that had begun transfers: see has_dropped_transfers().
void note_dropped_transfers() noexcept;

}  // namespace tessera::comm
