// SPDX-License-Identifier: Apache-2.0
// How the kernels of every device see their operands. No library code in here: these lines are
// compiled for every instruction set and by nvcc.
#pragma once

#include <cstdint>

namespace tessera::kernels {

struct Bf16 {
  std::uint16_t bits;
};

/// What a stored type is computed in.
template <class T>
struct ComputeType {
  using type = float;
};
template <>
struct ComputeType<double> {
  using type = double;
};
template <class T>
using Compute = typename ComputeType<T>::type;

/// Rows that are `stride` elements apart.
template <class T>
struct Rows {
  T* data;
  std::int64_t stride;
};

/// rows x width elements.
struct Extent {
  std::int64_t rows, width;
};

/// Labels of the rows, and the global id of the first column.
struct RowLabels {
  const std::int64_t* labels;
  std::int64_t vocab_begin;
};
inline constexpr std::int64_t ignored_row = -100;

/// Positions [0, positions) of one sequence: heads * head_dim elements each, input rows `stride`
/// apart, output rows contiguous.
struct RopeExtent {
  std::int64_t positions, heads, head_dim, stride;
};

/// Scalars of an AdamW sweep; see AdamWScalars for their meaning.
struct AdamWArguments {
  double gradient_scale, decay, beta1, beta2, root_correction2, eps, step;
};

}  // namespace tessera::kernels
