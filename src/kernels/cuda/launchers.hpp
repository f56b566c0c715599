// SPDX-License-Identifier: Apache-2.0
// The device kernels as plain functions: the host's row functions with a stream. Defined in the .cu
// files, for double, float and Bf16.
#pragma once

#include <cuda_runtime_api.h>

#include <span>
#include <type_traits>

#include "element_kernels.hpp"
#include "launch_sizes.hpp"
#include "row_types.hpp"

namespace tessera::kernels::device {

/// What atomicMax takes.
template <class T>
using MagnitudeBits = std::conditional_t<sizeof(T) == 8, unsigned long long, unsigned>;

/// How bytes are made and stored.
struct Float8Bytes {
  bool has_infinities;  ///< e5m2, else e4m3
  bool transposed;
};

/// Of a matrix's rows and of its columns.
struct BothScales {
  const float *of_rows, *of_columns;
};
struct BothBytes {
  std::uint8_t *by_rows, *by_columns;
};

/// rows [count, width], null in backward without weights; places and weights [tokens, choices].
template <class T>
struct ChoiceRows {
  const T* rows;
  const std::int64_t* places;
  const Compute<T>* weights;  ///< null: all are 1
  std::int64_t count, tokens, choices, width;
};
template <class T>
struct ChoiceGradients {
  T* of_rows;
  Compute<T>* of_weights;  ///< null without weights
};

/// A table [rows, width] of the vocabulary's rows from row_begin on, and how many tokens there are.
struct TableRows {
  std::int64_t tokens, rows, width, row_begin;
};
/// As SortedTokens of embedding.hpp: ascending, and equal ones in their order.
struct TokenOrder {
  const std::int64_t *tokens, *places;
};

/// Throws Error(environment) with CUDA's words when `kernel` could not be started. Called after
/// each launch.
void check_launch(const char* kernel);

template <class T>
void rms_norm(const NormInput<T>& in, const T* weight, T* y, Compute<T>* rstd, Extent extent,
              double eps, cudaStream_t stream);
/// dweight [ceil(rows / rows_per_block(width)), width]: the sums of blocks of rows.
template <class T>
void rms_norm_backward(const NormGradient<T>& gradient, const T* x, const T* weight,
                       const Compute<T>* rstd, T* dx, Compute<T>* dweight, Extent extent,
                       cudaStream_t stream);
#define TESSERA_LAUNCHER(name, Type) \
  template <class T>                 \
  void name(const ElementRows<T>& rows, Extent extent, cudaStream_t stream);
TESSERA_ELEMENT_KERNELS(TESSERA_LAUNCHER)
#undef TESSERA_LAUNCHER
template <class T>
void rope(const RopeParts<T>& parts, const Compute<T>* cos, const Compute<T>* sin, bool inverse,
          cudaStream_t stream);
template <class T>
void row_max(Rows<const T> logits, Compute<T>* max, Extent extent, cudaStream_t stream);
template <class T>
void sum_exp(Rows<const T> logits, const Compute<T>* max, RowLabels labels, Compute<T>* sum,
             Compute<T>* target, Extent extent, cudaStream_t stream);
template <class T>
void softmax_gradient(Rows<T> logits, const Compute<T>* max, const Compute<T>* sum,
                      RowLabels labels, Compute<T> scale, Extent extent, cudaStream_t stream);
/// sums [ceil(count / squares_per_block)].
template <class T>
void sum_of_squares(const T* values, std::int64_t count, double* sums, cudaStream_t stream);
/// words [ExactSum::word_count] += the squares' digits; each block carries once, so that 2^29 of
/// them fit a word.
template <class T>
void exact_squares(const T* values, std::int64_t count, std::int64_t* words, cudaStream_t stream);
/// Of each row, each column, or all elements of x, as bits of the type that x is computed in.
/// `largest` begins as 0. A float32's NaN has the largest bits.
template <class T>
void largest_magnitudes(Rows<const T> x, MagnitudeBits<T>* largest, ScaledLines lines,
                        Extent extent, cudaStream_t stream);
/// The same of rows and columns, in one pass over x.
template <class T>
void largest_of_both(Rows<const T> x, MagnitudeBits<T>* of_rows, MagnitudeBits<T>* of_columns,
                     Extent extent, cudaStream_t stream);
/// See scales_for of scaled_bytes.hpp; `most` is the format's largest number. inverses = 1 /
/// scales.
template <class C>
void float8_scales(const C* largest, float* scales, float* inverses, std::int64_t count,
                   double most, bool powers_of_two, cudaStream_t stream);
/// Scales of the rows and their bytes in one pass: the bits of the three launchers around.
template <class T>
void float8_rows(Rows<const T> x, bool has_infinities, bool powers_of_two, float* scales,
                 float* inverses, std::uint8_t* bytes, Extent extent, cudaStream_t stream);
/// Line i, a row or where transposed a column, has scales[i * step]. bytes [rows, width], or
/// transposed [width, rows].
template <class T>
void float8_bytes(Rows<const T> x, const float* scales, int step, Float8Bytes how,
                  std::uint8_t* bytes, Extent extent, cudaStream_t stream);
/// Both kinds of float8_bytes with a scale for each line, in one pass over x.
template <class T>
void float8_both(Rows<const T> x, bool has_infinities, const BothScales& scales,
                 const BothBytes& bytes, Extent extent, cudaStream_t stream);
template <class P, class G, class M>
void adamw(P* param, const G* grad, M* exp_avg, M* exp_avg_sq, Bf16* compute_copy,
           std::int64_t count, const AdamWArguments& arguments, cudaStream_t stream);
/// `rows` rows of each copy, rounded to To. For std::uint8_t to std::uint64_t on both sides, and
/// for any two of the types above.
template <class From, class To>
void copy_rows(std::span<const RowsCopy> copies, std::int64_t rows, cudaStream_t stream);
/// The same, added to what is there.
template <class T>
void add_rows(std::span<const RowsCopy> copies, std::int64_t rows, cudaStream_t stream);
/// See embedding.hpp; made [tokens, width].
template <class T>
void embedding(const T* table, const std::int64_t* tokens, TableRows of, T* made,
               cudaStream_t stream);
/// gradient [tokens, width]; made [rows, width] begins as 0.
template <class T>
void embedding_backward(const T* gradient, const TokenOrder& order, TableRows of, T* made,
                        cudaStream_t stream);
/// See choices.hpp; sums [tokens, width].
template <class T>
void sum_of_choices(const ChoiceRows<T>& of, T* sums, cudaStream_t stream);
template <class T>
void sum_of_choices_backward(const ChoiceRows<T>& of, const T* gradient,
                             const ChoiceGradients<T>& made, cudaStream_t stream);

}  // namespace tessera::kernels::device
