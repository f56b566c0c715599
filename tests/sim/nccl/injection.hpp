// SPDX-License-Identifier: Apache-2.0
// Failures that a test asks for.
#pragma once

#include <string_view>

namespace tessera::sim::nccl {

/// TESSERA_SIM_NCCL_FAIL=CALL:N makes the Nth call of that function of NCCL's interface, such as
/// ncclCommSplit:2, return ncclSystemError. With the name async the Nth collective of this process
/// ends with ncclRemoteError instead, and with the name memory it has no memory for its buffers.
/// CALL:N:RANK means that rank only. Counts from when the variable got its value. Says whether it
/// is this call.
bool is_injected(std::string_view call);

}  // namespace tessera::sim::nccl
