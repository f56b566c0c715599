// SPDX-License-Identifier: Apache-2.0
// Rows of a table, and the sums of what its rows get from their tokens.
#include "cuda/packs.cuh"

namespace tessera::kernels::device {
namespace {

/// A row with as many tokens is one warp's; one with more, the block's.
constexpr std::int64_t most_alone = 32;

template <int size, class T>
void embedding_packs(const T* table, const std::int64_t* tokens, TableRows of, T* made,
                     cudaStream_t stream) {
  for_packs<size>("embedding", {of.tokens, of.width}, stream,
                  {reads(table, of.rows * of.width), reads(tokens, of.tokens),
                   writes(made, of.tokens * of.width)},
                  [=] __device__(std::int64_t t, std::int64_t column) {
                    const std::int64_t row = tokens[t] - of.row_begin;
                    Pack<T, size> pack{};
                    if (row >= 0 && row < of.rows)
                      pack = load<size>(table + row * of.width + column);
                    store<size>(made + t * of.width + column, pack);
                  });
}

/// The end of the equal tokens that begin at `first`, and none of which is at `end` or behind it.
__device__ inline std::int64_t end_of_run(const std::int64_t* tokens, std::int64_t first,
                                          std::int64_t end) {
  std::int64_t begin = first;  // the last that is known to be equal
  while (end - begin > 1) {
    const std::int64_t middle = begin + (end - begin) / 2;
    (tokens[middle] == tokens[first] ? begin : end) = middle;
  }
  return end;
}

/// The sum of gradients of tokens first, first + step, ... before `end`, in this order.
template <int size, class T>
__device__ Pack<Compute<T>, size> sum_of_run(const T* gradient, const std::int64_t* places,
                                             std::int64_t width, std::int64_t first,
                                             std::int64_t end, int step) {
  Pack<Compute<T>, size> sum{};
#pragma unroll 4
  for (std::int64_t i = first; i < end; i += step) {
    const auto pack = load<size>(gradient + places[i] * width);
#pragma unroll
    for (int k = 0; k < size; ++k) sum.items[k] += wide(pack.items[k]);
  }
  return sum;
}

template <int size, class T>
__device__ void store_narrow(T* to, const Pack<Compute<T>, size>& sum) {
  Pack<T, size> pack;
#pragma unroll
  for (int k = 0; k < size; ++k) pack.items[k] = narrow<T>(sum.items[k]);
  store<size>(to, pack);
}

/// A block looks at a place of `tokens` for each of its warps, and at the columns that a warp has
/// packs for. Where a row's tokens begin, it is added up: by that warp alone, or by all warps, each
/// of which takes every eighth token, and whose sums are then added in the order of the warps.
template <int size, class T>
void sum_runs(const T* gradient, const TokenOrder& order, TableRows of, T* made,
              cudaStream_t stream) {
  using Sum = Pack<Compute<T>, size>;
  constexpr int columns = 32 * size;
  const std::int64_t tiles = (of.width + columns - 1) / columns,
                     groups = (of.tokens + warps_per_block - 1) / warps_per_block;
  launch({"embedding_backward",
          groups * tiles,
          threads_per_block * sizeof(Sum),
          stream,
          {reads(gradient, of.tokens * of.width), reads(order.tokens, of.tokens),
           reads(order.places, of.tokens), writes(made, of.rows * of.width)}},
         [=] __device__(std::int64_t block, unsigned char* shared) {
           Sum* const sums = reinterpret_cast<Sum*>(shared);
           const auto [group, tile] = divided(block, tiles);
           const int warp = threadIdx.x / 32;
           const std::int64_t column = tile * columns + threadIdx.x % 32 * size;
           const bool has_columns = column < of.width;
           for (int k = 0; k < warps_per_block; ++k) {
             const std::int64_t first = group * warps_per_block + k;
             if (first >= of.tokens) break;
             const std::int64_t token = order.tokens[first], row = token - of.row_begin;
             if (row < 0 || row >= of.rows) continue;
             if (first > 0 && order.tokens[first - 1] == token) continue;
             T* const to = made + row * of.width + column;
             const bool alone =
                 first + most_alone >= of.tokens || order.tokens[first + most_alone] != token;
             if (alone && warp != k) continue;
             const std::int64_t limit =
                 alone && first + most_alone < of.tokens ? first + most_alone : of.tokens;
             const std::int64_t end = end_of_run(order.tokens, first, limit);
             if (alone) {
               if (has_columns)
                 store_narrow<size>(to, sum_of_run<size>(gradient + column, order.places, of.width,
                                                         first, end, 1));
               continue;
             }
             if (has_columns)
               sums[threadIdx.x] = sum_of_run<size>(gradient + column, order.places, of.width,
                                                    first + warp, end, warps_per_block);
             __syncthreads();
             if (warp == 0 && has_columns) {
               Sum sum = sums[threadIdx.x];
               for (int w = 1; w < warps_per_block; ++w)
#pragma unroll
                 for (int i = 0; i < size; ++i) sum.items[i] += sums[w * 32 + threadIdx.x].items[i];
               store_narrow<size>(to, sum);
             }
             __syncthreads();
           }
         });
}

template <class T>
bool fits(const T* one, const T* other, std::int64_t width) {
  return rows_fit(pack_size<T>, width, rows(one, width), rows(other, width));
}

}  // namespace

template <class T>
void embedding(const T* table, const std::int64_t* tokens, TableRows of, T* made,
               cudaStream_t stream) {
  fits<T>(table, made, of.width) ? embedding_packs<pack_size<T>>(table, tokens, of, made, stream)
                                 : embedding_packs<1>(table, tokens, of, made, stream);
}

template <class T>
void embedding_backward(const T* gradient, const TokenOrder& order, TableRows of, T* made,
                        cudaStream_t stream) {
  fits<T>(gradient, made, of.width) ? sum_runs<pack_size<T>>(gradient, order, of, made, stream)
                                    : sum_runs<1>(gradient, order, of, made, stream);
}

#define TESSERA_INSTANTIATE(T)                                                            \
  template void embedding<T>(const T*, const std::int64_t*, TableRows, T*, cudaStream_t); \
  template void embedding_backward<T>(const T*, const TokenOrder&, TableRows, T*, cudaStream_t);
TESSERA_FOR_TYPES(TESSERA_INSTANTIATE)

}  // namespace tessera::kernels::device
