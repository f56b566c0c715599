// SPDX-License-Identifier: Apache-2.0
// How the warps of a block read many values, a tile at a time.
#pragma once

#include "cuda/launch.cuh"

namespace tessera::kernels::device {

/// Where the thread's value number `k` of the tile at `first` is: packs of the 32 lanes lie side by
/// side.
template <int size>
__device__ std::int64_t place(std::int64_t first, int k) {
  return first + (k / size * 32 + threadIdx.x % 32) * size + k % size;
}

/// A thread's share of the tile at `first`. Zeros beyond `last`.
template <int size, int tile_values, class T>
__device__ void load_tile(const T* values, std::int64_t first, std::int64_t last,
                          T (&tile)[tile_values]) {
  for (int k = 0; k < tile_values / size; ++k) {
    const std::int64_t at = place<size>(first, k * size);
    Pack<T, size> pack{};
    if (at + size <= last)
      pack = load<size>(values + at);
    else
      for (int i = 0; i < size; ++i)
        if (at + i < last) pack.items[i] = values[at + i];
    for (int i = 0; i < size; ++i) tile[k * size + i] = pack.items[i];
  }
}

/// Calls use(tile, at, last) for each tile of the part of a block that is this warp's: the values
/// from `at`, no further than `last`.
template <int size, int tile_values, class T, class Use>
__device__ void for_tiles(const T* values, std::int64_t count, std::int64_t block, const Use& use) {
  constexpr std::int64_t share = squares_per_block / warps_per_block, step = 32 * tile_values;
  const std::int64_t first = block * squares_per_block + threadIdx.x / 32 * share;
  const std::int64_t last = first + share < count ? first + share : count;
  for (std::int64_t at = first; at < last; at += step) {
    T tile[tile_values];
    load_tile<size>(values, at, last, tile);
    use(tile, at, last);
  }
}

}  // namespace tessera::kernels::device
