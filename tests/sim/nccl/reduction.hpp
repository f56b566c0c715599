// SPDX-License-Identifier: Apache-2.0
// Sums and the like of the members' inputs, in rank order.
#pragma once

#include <nccl.h>

#include <cstddef>
#include <span>

namespace tessera::sim::nccl {

/// out[i] = ((in[0][i] op in[1][i]) op in[2][i]) ...; out may be one of the inputs. Each step
/// rounds to the type, as where NCCL passes partial sums around a ring (sums in float16 and
/// bfloat16 lose the most this way). Integers wrap. avg multiplies floating-point inputs by 1/n
/// before the sum, and divides sums of integers after it, as NCCL does. max and min prefer a number
/// to NaN. The type must be one that can_reduce().
void reduce(std::span<const std::byte* const> in, std::byte* out, std::size_t count,
            ncclDataType_t type, ncclRedOp_t op);
/// All but the two of eight bits, which the simulated NCCL only moves.
bool can_reduce(ncclDataType_t type);

}  // namespace tessera::sim::nccl
