// SPDX-License-Identifier: Apache-2.0
// Element-wise reduction over ranks in one fixed order, so that every run and every algorithm gives
// the same bits.
#pragma once

#include <cstdint>
#include <span>

#include "tessera/base/dtype.hpp"
#include "tessera/comm/communicator.hpp"

namespace tessera::comm {

/// out[i] = op over r of parts[r][i], for i in [0, count). Sums run over the binary tree of rank
/// numbers: the halves of [0, n) at the largest power of two below n; 16-bit floats are summed in
/// float32 and rounded once. NaN wins max and min. `out` may be one of the parts. Throws
/// Error(usage) for 8-bit floats, which have no sum.
void reduce_parts(std::span<const void* const> parts, void* out, std::int64_t count, DType dtype,
                  Op op);

/// The same for one instruction set; false for a dtype that has no reduction. Public for the test
/// that compares them.
using Reduction = bool(const void* const* parts, int ranks, void* out, std::int64_t count,
                       DType dtype, Op op);
Reduction reduce_generic, reduce_avx2, reduce_avx512;
/// The ones that this processor can run, best last.
std::span<Reduction* const> usable_reductions();

}  // namespace tessera::comm
