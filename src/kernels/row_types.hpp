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

/// Rows of `width` elements that are copied, strides in elements of each side. `from` has `count`
/// elements: zeros are copied for those that a row lacks.
struct RowsCopy {
  const void* from;
  void* to;
  std::int64_t from_stride, to_stride, width, count;
};

/// What a norm is of: the sums of two rows, or rows as they are. Rows are dense.
template <class T>
struct NormInput {
  const T* x;
  const T* residual;  ///< null: none
  T* sum;             ///< gets x + residual, if there is one
};

/// Gradients of what a norm gives.
template <class T>
struct NormGradient {
  const T* y;
  const T* sum;  ///< of the sum, beside what the norm makes of it; null: none
};

/// Labels of the rows, and the global id of the first column.
struct RowLabels {
  const std::int64_t* labels;
  std::int64_t vocab_begin;
};
inline constexpr std::int64_t ignored_row = -100;

/// Positions [0, positions) of one sequence: heads * head_dim elements each, input rows `stride`
/// apart, output rows `out_stride`.
struct RopeExtent {
  std::int64_t positions, heads, head_dim, stride, out_stride;
};

/// Parts that one rotation serves: queries, keys, values.
inline constexpr int most_rope_parts = 3;

/// One of them: sequences and positions are so many elements apart, heads lie together.
template <class T>
struct RopeHeads {
  const T* x;
  T* y;
  std::int64_t heads, x_sequence, x_position, y_sequence, y_position;
  bool turns;
};

template <class T>
struct RopeParts {
  RopeHeads<T> parts[most_rope_parts];
  int count;
  std::int64_t sequences, positions, head_dim;
};

/// How a sweep rounds to bfloat16: to nearest, or by random bits of the key and of the elements'
/// numbers in the whole parameter. Element i has number first + i / run * stride + i % run.
struct RoundingNoise {
  bool on = false;
  std::uint32_t low_key = 0, high_key = 0;
  std::int64_t first = 0, run = 1, stride = 1;
};

/// Scalars of an AdamW sweep; see AdamWScalars for their meaning.
struct AdamWArguments {
  double gradient_scale;
  double coupled_decay;  ///< the part of the parameter that is added to the gradient
  double decay;          ///< factor of the parameter
  double beta1, beta2, root_correction2, eps, step;
  RoundingNoise noise = {};
};

/// Lines of a matrix that have a scale each, or all its elements one.
enum class ScaledLines : std::uint8_t { rows, columns, all };

}  // namespace tessera::kernels
