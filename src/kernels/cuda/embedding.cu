// SPDX-License-Identifier: Apache-2.0
// Rows of a table, and the sums of what its rows get from their tokens.
#include "cuda/packs.cuh"

namespace tessera::kernels::device {
namespace {

/// A row with up to as many tokens is one warp's; one with more, the block's.
constexpr std::int64_t most_alone = 32;

/// A thread takes a pack of each of `parts` equal parts of a row: it waits for the token once, and
/// enough is under way then.
template <int size, int parts, class T>
void embedding_packs(const T* table, const std::int64_t* tokens, TableRows of, T* made,
                     cudaStream_t stream) {
  const std::int64_t part = of.width / parts;
  for_packs<size>("embedding", {of.tokens, part}, stream,
                  {reads(table, of.rows * of.width), reads(tokens, of.tokens),
                   writes(made, of.tokens * of.width)},
                  [=] __device__(std::int64_t t, std::int64_t column) {
                    const std::int64_t row = tokens[t] - of.row_begin;
                    Pack<T, size> packs[parts]{};
                    if (row >= 0 && row < of.rows)
                      for (int k = 0; k < parts; ++k)
                        packs[k] = load<size>(table + row * of.width + k * part + column);
                    for (int k = 0; k < parts; ++k)
                      store<size>(made + t * of.width + k * part + column, packs[k]);
                  });
}

/// The end of the equal tokens that begin at `first`, at most `end`.
__device__ inline std::int64_t end_of_run(const std::int64_t* tokens, std::int64_t first,
                                          std::int64_t end) {
  std::int64_t begin = first;  // the last that is known to be equal
  while (end - begin > 1) {
    const std::int64_t middle = begin + (end - begin) / 2;
    if (tokens[middle] == tokens[first])
      begin = middle;
    else
      end = middle;
  }
  return end;
}

/// Whether the tokens of a row begin at `place`, and the part of the vocabulary has this row.
__device__ inline bool begins_run(const std::int64_t* tokens, std::int64_t place, TableRows of) {
  const std::int64_t row = tokens[place] - of.row_begin;
  return row >= 0 && row < of.rows && (place == 0 || tokens[place - 1] != tokens[place]);
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

/// A warp adds up the row whose tokens begin at its place of `order`, if it has few tokens. It
/// takes the columns that it has packs for.
template <int size, class T>
__device__ void sum_alone(const T* gradient, const TokenOrder& order, TableRows of, T* made,
                          std::int64_t place, std::int64_t column) {
  if (place >= of.tokens || column >= of.width || !begins_run(order.tokens, place, of)) return;
  const std::int64_t token = order.tokens[place];
  std::int64_t end = place + 1;
  while (end < of.tokens && end - place <= most_alone && order.tokens[end] == token) ++end;
  if (end - place > most_alone) return;
  store_narrow<size>(made + (token - of.row_begin) * of.width + column,
                     sum_of_run<size>(gradient + column, order.places, of.width, place, end, 1));
}

/// The same by all warps of a block for a row with more tokens. Each takes every eighth token, and
/// their sums are added in the order of the warps. `sums` has `size` numbers for each thread.
template <int size, class T>
__device__ void sum_together(const T* gradient, const TokenOrder& order, TableRows of, T* made,
                             std::int64_t place, std::int64_t column, Compute<T>* sums) {
  const std::int64_t token = order.tokens[place];
  const std::int64_t end = end_of_run(order.tokens, place, of.tokens);
  const int warp = threadIdx.x / 32;
  Pack<Compute<T>, size> sum{};
  if (column < of.width)
    sum = sum_of_run<size>(gradient + column, order.places, of.width, place + warp, end,
                           warps_per_block);
#pragma unroll
  for (int k = 0; k < size; ++k) sums[k * threads_per_block + threadIdx.x] = sum.items[k];
  __syncthreads();
  if (warp == 0 && column < of.width) {
    for (int w = 1; w < warps_per_block; ++w)
#pragma unroll
      for (int k = 0; k < size; ++k)
        sum.items[k] += sums[k * threads_per_block + w * 32 + threadIdx.x];
    store_narrow<size>(made + (token - of.row_begin) * of.width + column, sum);
  }
  __syncthreads();
}

/// A block has a place of `order` for each of its warps. If a row with many tokens begins at one of
/// them, the last of these places and the one most_alone after the first have its token.
template <int size, class T>
void sum_runs(const T* gradient, const TokenOrder& order, TableRows of, T* made,
              cudaStream_t stream) {
  constexpr int columns = 32 * size;
  const std::int64_t tiles = (of.width + columns - 1) / columns,
                     groups = (of.tokens + warps_per_block - 1) / warps_per_block;
  launch({"embedding_backward",
          groups * tiles,
          size * threads_per_block * sizeof(Compute<T>),
          stream,
          {reads(gradient, of.tokens * of.width), reads(order.tokens, of.tokens),
           reads(order.places, of.tokens), writes(made, of.rows * of.width)}},
         [=] __device__(std::int64_t block, unsigned char* shared) {
           const auto [group, tile] = divided(block, tiles);
           const std::int64_t first = group * warps_per_block, last = first + warps_per_block - 1;
           const std::int64_t column = tile * columns + threadIdx.x % 32 * size;
           sum_alone<size>(gradient, order, of, made, first + threadIdx.x / 32, column);
           if (first + most_alone >= of.tokens) return;
           const std::int64_t token = order.tokens[last];
           if (order.tokens[first + most_alone] != token) return;
           std::int64_t place = last;
           while (place > first && order.tokens[place - 1] == token) --place;
           if (place + most_alone >= of.tokens || order.tokens[place + most_alone] != token) return;
           if (begins_run(order.tokens, place, of))
             sum_together<size>(gradient, order, of, made, place, column,
                                reinterpret_cast<Compute<T>*>(shared));
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
  constexpr int size = pack_size<T>, parts = 4;
  if (!fits<T>(table, made, of.width))
    embedding_packs<1, 1>(table, tokens, of, made, stream);
  else if (of.width % (parts * size) != 0)
    embedding_packs<size, 1>(table, tokens, of, made, stream);
  else
    embedding_packs<size, parts>(table, tokens, of, made, stream);
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
