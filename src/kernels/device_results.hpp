// SPDX-License-Identifier: Apache-2.0
// What kernels of a device allocate for their results: for the launches of device_backend.cpp, and
// alone where tensors have no values.
#pragma once

#include <array>

#include "backend.hpp"
#include "launch_sizes.hpp"
#include "tessera/kernels/accumulation_type.hpp"

namespace tessera::kernels::device {

/// Of x [rows, D]; the sum is undefined where nothing is added to x.
inline NormValue norm_value(const at::Tensor& x, bool summed) {
  return {summed ? at::empty_like(x) : at::Tensor(), at::empty_like(x),
          at::empty({x.size(0)}, x.options().dtype(accumulation_type(x)))};
}

/// Sums of the weight's gradient for blocks of rows of x [rows, D].
inline at::Tensor weight_sums(const at::Tensor& x) {
  const std::int64_t rows = rows_per_block(x.size(1)), blocks = (x.size(0) + rows - 1) / rows;
  return at::empty({blocks, x.size(1)}, x.options().dtype(accumulation_type(x)));
}

inline at::Tensor square_sums(const at::Tensor& values) {
  const std::int64_t blocks = (values.numel() + squares_per_block - 1) / squares_per_block;
  return at::empty({blocks}, values.options().dtype(at::kDouble));
}

/// An exact sum of 0.
inline at::Tensor exact_words(const at::Tensor& values) {
  return at::zeros({ExactSum::word_count}, values.options().dtype(at::kLong));
}

/// Magnitudes of 0, which kernels raise.
inline at::Tensor line_magnitudes(const at::Tensor& x, ScaledLines lines) {
  return at::zeros(
      {lines == ScaledLines::rows ? x.size(0) : 1, lines == ScaledLines::columns ? x.size(1) : 1},
      x.options().dtype(accumulation_type(x)));
}

/// Numbers in float32 of which each group begins at a multiple of 16 bytes: cuBLASLt reads scales
/// so.
inline std::int64_t padded_scales(std::int64_t count) { return (count + 3) / 4 * 4; }

inline Float8Scales float8_scales(const at::Tensor& of, std::int64_t rows, std::int64_t columns) {
  const std::int64_t count = rows * columns;
  const at::Tensor both = at::empty({2, padded_scales(count)}, of.options().dtype(at::kFloat));
  const auto part = [&](std::int64_t i) {
    return both[i].narrow(0, 0, count).view({rows, columns});
  };
  return {part(0), part(1)};
}

/// x in bytes [m, n]; with the order of columns, a transposed view.
inline at::Tensor float8_bytes(const at::Tensor& x, ByteOrder order) {
  const auto options = x.options().dtype(at::kByte);
  return order == ByteOrder::rows ? at::empty(x.sizes(), options)
                                  : at::empty({x.size(1), x.size(0)}, options).t();
}

inline ScaledBytes float8_rows(const at::Tensor& x, DType type) {
  const auto [scales, inverses] = float8_scales(x, x.size(0), 1);
  return {float8_bytes(x, ByteOrder::rows), scales, type, {1, ScaleBlock::whole}, inverses};
}

/// What float8_both gives, and the magnitudes of 0 that its first kernel raises: those of the rows
/// and, from `first_column` on, those of the columns, as scales and inverses follow each other too.
struct Float8Both {
  ScaledBothWays results;
  at::Tensor largest;
  Float8Scales scales;
  std::int64_t first_column;
};
inline Float8Both float8_both(const at::Tensor& x, DType type) {
  const std::int64_t rows = x.size(0), columns = x.size(1), first_column = padded_scales(rows);
  const at::Tensor largest =
      at::zeros({first_column + columns}, x.options().dtype(accumulation_type(x)));
  const Float8Scales all = float8_scales(x, 1, first_column + columns);
  const auto of_rows = [&](const at::Tensor& numbers) {
    return numbers.narrow(1, 0, rows).view({rows, 1});
  };
  const auto of_columns = [&](const at::Tensor& numbers) {
    return numbers.narrow(1, first_column, columns);
  };
  constexpr auto whole = ScaleBlock::whole;
  return {{{float8_bytes(x, ByteOrder::rows),
            of_rows(all.scales),
            type,
            {1, whole},
            of_rows(all.inverses)},
           {float8_bytes(x, ByteOrder::columns),
            of_columns(all.scales),
            type,
            {whole, 1},
            of_columns(all.inverses)}},
          largest,
          all,
          first_column};
}

inline at::Tensor embedding_rows(const at::Tensor& table, const at::Tensor& tokens) {
  return at::empty({tokens.numel(), table.size(1)}, table.options());
}
/// Zeros, where no row has a token.
inline at::Tensor table_gradient(const at::Tensor& gradient, VocabularyRows of) {
  return at::zeros({of.rows, gradient.size(1)}, gradient.options());
}

inline at::Tensor choice_sums(const at::Tensor& rows, const at::Tensor& places) {
  return at::empty({places.size(0), rows.size(1)}, rows.options());
}

/// Of `count` rows, zeros where some may have no choice, and of weights where they are defined.
inline std::pair<at::Tensor, at::Tensor> choice_gradients(const at::Tensor& gradient,
                                                          std::int64_t count,
                                                          const at::Tensor& places,
                                                          const at::Tensor& weights,
                                                          Paired paired) {
  const std::array<std::int64_t, 2> size{count, gradient.size(1)};
  const bool all = paired == Paired::rows || (paired == Paired::choices && count == places.numel());
  return {all ? at::empty(size, gradient.options()) : at::zeros(size, gradient.options()),
          weights.defined() ? at::empty_like(weights) : at::Tensor()};
}

}  // namespace tessera::kernels::device
