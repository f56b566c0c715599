// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tessera {

/// LibTorch's grouped product of bfloat16 matrices on GPUs takes rows that begin at multiples of
/// 16 bytes: so many columns, or a multiple.
inline constexpr std::int64_t kGroupedColumns = 8;

}  // namespace tessera
