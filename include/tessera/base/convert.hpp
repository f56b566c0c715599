// SPDX-License-Identifier: Apache-2.0
// Element types into one another while loading.
#pragma once

#include <cstdint>

#include "tessera/base/dtype.hpp"

namespace tessera {

/// Equal types, two of {f64, f32, f16, bf16}, or two of {i64, i32, i16, i8, u8}.
bool convertible(DType from, DType to) noexcept;

/// Converts `count` elements, rounding once to nearest even; neither side needs alignment. The
/// types are convertible. False when an integer or a finite number does not fit into `to_type`.
[[nodiscard]] bool convert(const void* from, DType from_type, void* to, DType to_type,
                           std::int64_t count) noexcept;

}  // namespace tessera
