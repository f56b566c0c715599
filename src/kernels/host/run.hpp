// SPDX-License-Identifier: Apache-2.0
// Threads for the host's row functions.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include <algorithm>

#include "host/parallel_for.hpp"
#include "host/row_functions.hpp"
#include "typed.hpp"

namespace tessera::kernels {

inline const RowFunctions<double>& functions_of(double) { return host_functions().f64; }
inline const RowFunctions<float>& functions_of(float) { return host_functions().f32; }
inline const RowFunctions<Bf16>& functions_of(Bf16) { return host_functions().bf16; }

/// Elements that are worth a thread of their own.
inline constexpr std::int64_t elements_per_task = 16384;

/// body(first, count) over [0, rows), in parallel, each task at least elements_per_task elements of
/// `width` a row.
template <class Body>
void for_rows(std::int64_t rows, std::int64_t width, const Body& body) {
  const std::int64_t grain =
      std::max<std::int64_t>(1, elements_per_task / std::max<std::int64_t>(1, width));
  parallel_for(0, rows, grain,
               [&](std::int64_t begin, std::int64_t end) { body(begin, end - begin); });
}

}  // namespace tessera::kernels
