// SPDX-License-Identifier: Apache-2.0
// Sums of squares on the device.
#include "cuda/launch.cuh"
#include "fixed_point.hpp"

namespace tessera::kernels::device {

namespace {

/// Values that a thread holds at a time, as packs of `size` neighbours. Of exact sums, less: more
/// warps hide more of the time that additions take.
constexpr int sum_values = 16, exact_values = 8;
constexpr int warps_per_block = threads_per_block / 32;

/// A thread's share of the tile at `first`: packs of the 32 lanes lie side by side. Zeros beyond
/// `last`.
template <int size, int tile_values, class T>
__device__ void load_tile(const T* values, std::int64_t first, std::int64_t last,
                          T (&tile)[tile_values]) {
  const int lane = threadIdx.x % 32;
  for (int k = 0; k < tile_values / size; ++k) {
    const std::int64_t at = first + (k * 32 + lane) * size;
    Pack<T, size> pack{};
    if (at + size <= last)
      pack = load<size>(values + at);
    else
      for (int i = 0; i < size; ++i)
        if (at + i < last) pack.items[i] = values[at + i];
    for (int i = 0; i < size; ++i) tile[k * size + i] = pack.items[i];
  }
}

/// Calls use(tile) for each tile of the part of a block that is this warp's.
template <int size, int tile_values, class T, class Use>
__device__ void for_tiles(const T* values, std::int64_t count, std::int64_t block, const Use& use) {
  constexpr std::int64_t share = squares_per_block / warps_per_block, step = 32 * tile_values;
  const std::int64_t first = block * squares_per_block + threadIdx.x / 32 * share;
  const std::int64_t last = first + share < count ? first + share : count;
  for (std::int64_t at = first; at < last; at += step) {
    T tile[tile_values];
    load_tile<size>(values, at, last, tile);
    use(tile);
  }
}

template <int size, class T>
void sum_of_squares(const T* values, std::int64_t count, double* sums, cudaStream_t stream) {
  const std::int64_t blocks = (count + squares_per_block - 1) / squares_per_block;
  launch({"sum_of_squares",
          blocks,
          sizeof(double) * 32,
          stream,
          {reads(values, count), writes(sums, blocks)}},
         [=] __device__(std::int64_t block, unsigned char* shared) {
           double parts[4] = {};
           for_tiles<size, sum_values>(values, count, block, [&](const T(&tile)[sum_values]) {
             for (int k = 0; k < sum_values; ++k) {
               const double v = wide(tile[k]);
               parts[k % 4] = fma(v, v, parts[k % 4]);
             }
           });
           const double sum = reduce_block((parts[0] + parts[1]) + (parts[2] + parts[3]),
                                           reinterpret_cast<double*>(shared), Add{});
           if (threadIdx.x == 0) sums[block] = sum;
         });
}

static_assert(squares_per_block / warps_per_block <= 1 << 13, "the grids of WarpSquares");

/// Squares of one warp as three sums without error, on grids that follow the largest square. The
/// pre-rounding of Demmel and Nguyen, "Fast Reproducible Floating-Point Summation" (ARITH 2013):
/// (x + M) - M is x on the grid of M's last bit, which is 2^-39 of a bound of the squares: 2^13 of
/// them sum exactly in 53 bits. The next grid holds what is left, and is 2^39 times as fine.
class WarpSquares {
 public:
  /// The biased exponents between which all three grids are normal numbers.
  static constexpr int lowest = 160, highest = 2000;

  __device__ int exponent() const { return exponent_; }

  /// For squares up to this biased exponent. The sums so far must have been deposited.
  __device__ void follow(int exponent) {
    exponent_ = exponent;
    const std::uint64_t bits = static_cast<std::uint64_t>(exponent + 14) << 52 | 1ULL << 51;
    __builtin_memcpy(&coarse_, &bits, sizeof bits);
  }
  /// Returns what is finer than the three grids.
  __device__ double add(double x) {
    x = take(x, coarse_, sums_[0]);
    x = take(x, coarse_ * 0x1p-39, sums_[1]);
    return take(x, coarse_ * 0x1p-78, sums_[2]);
  }
  template <class Deposit>
  __device__ void deposit(const Deposit& deposit) {
    for (double& sum : sums_) {
      const double all = reduce_warp(sum, Add{});
      if (threadIdx.x % 32 == 0 && all != 0) deposit(all);
      sum = 0;
    }
  }

 private:
  __device__ static double take(double x, double grid, double& sum) {
    const double part = (x + grid) - grid;
    sum += part;
    return x - part;
  }

  int exponent_ = 0;
  double coarse_ = 0;
  double sums_[3] = {};
};

__device__ int biased_exponent(double x) {
  std::uint64_t bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  return static_cast<int>(bits >> 52 & 0x7ff);
}

/// Integer atomics on words in shared memory: any order gives the same words. Not inline: it is
/// rare and long.
__attribute__((noinline)) __device__ void add_digits(unsigned long long* words, double value) {
  fixed_point::add(value, [&](int word, std::int64_t digit) {
    if (digit != 0) atomicAdd(words + word, static_cast<unsigned long long>(digit));
  });
}

struct Digits {
  unsigned long long* words;

  __device__ void operator()(double value) const { add_digits(words, value); }
};

/// Adds those of the numbers that are not 0, one by one: there are few.
__device__ void add_each(const double (&numbers)[exact_values], const Digits& digits) {
#pragma unroll
  for (int k = 0; k < exact_values; ++k)
    if (numbers[k] != 0) digits(numbers[k]);
}

/// The squares of a tile, in code without branches. What the grids cannot hold goes to the digits.
template <class T>
__device__ void add_tile(const T (&tile)[exact_values], WarpSquares& sums, const Digits& digits) {
  double squares[exact_values], rest[exact_values];
  int largest = 0;
  bool outside = false;
#pragma unroll
  for (int k = 0; k < exact_values; ++k) {
    const double v = wide(tile[k]);
    const double square = v * v;
    const int exponent = biased_exponent(square);
    const bool inside = exponent >= WarpSquares::lowest && exponent <= WarpSquares::highest;
    squares[k] = inside ? square : 0;
    rest[k] = inside ? 0 : square;
    outside = outside || rest[k] != 0;
    largest = inside && exponent > largest ? exponent : largest;
  }
  if (outside) add_each(rest, digits);
  largest = reduce_warp(largest, Max{});
  if (largest > sums.exponent()) {
    sums.deposit(digits);
    sums.follow(largest);
  }
  if (largest == 0) return;
  bool finer = false;
#pragma unroll
  for (int k = 0; k < exact_values; ++k) {
    rest[k] = sums.add(squares[k]);
    finer = finer || rest[k] != 0;
  }
  if (finer) add_each(rest, digits);
}

template <int size, class T>
void exact_squares(const T* values, std::int64_t count, std::int64_t* words, cudaStream_t stream) {
  using Word = unsigned long long;
  const std::int64_t blocks = (count + squares_per_block - 1) / squares_per_block;
  launch({"exact_squares",
          blocks,
          sizeof(Word) * fixed_point::word_count,
          stream,
          {reads(values, count), writes(words, fixed_point::word_count)}},
         [=] __device__(std::int64_t block, unsigned char* shared) {
           const Digits digits{reinterpret_cast<Word*>(shared)};
           for (int i = threadIdx.x; i < fixed_point::word_count; i += blockDim.x)
             digits.words[i] = 0;
           __syncthreads();
           WarpSquares sums;
           for_tiles<size, exact_values>(values, count, block, [&](const T(&tile)[exact_values]) {
             add_tile(tile, sums, digits);
           });
           sums.deposit(digits);
           __syncthreads();
           if (threadIdx.x == 0) fixed_point::carry(reinterpret_cast<std::int64_t*>(digits.words));
           __syncthreads();
           for (int i = threadIdx.x; i < fixed_point::word_count; i += blockDim.x) {
             if (digits.words[i] != 0)
               atomicAdd(reinterpret_cast<Word*>(words) + i, digits.words[i]);
           }
         });
}

}  // namespace

template <class T>
void sum_of_squares(const T* values, std::int64_t count, double* sums, cudaStream_t stream) {
  if (is_aligned(values, pack_size<T>))
    sum_of_squares<pack_size<T>>(values, count, sums, stream);
  else
    sum_of_squares<1>(values, count, sums, stream);
}

template <class T>
void exact_squares(const T* values, std::int64_t count, std::int64_t* words, cudaStream_t stream) {
  if (is_aligned(values, pack_size<T>))
    exact_squares<pack_size<T>>(values, count, words, stream);
  else
    exact_squares<1>(values, count, words, stream);
}

#define TESSERA_INSTANTIATE(T)                                                 \
  template void sum_of_squares(const T*, std::int64_t, double*, cudaStream_t); \
  template void exact_squares(const T*, std::int64_t, std::int64_t*, cudaStream_t);
TESSERA_FOR_TYPES(TESSERA_INSTANTIATE)

}  // namespace tessera::kernels::device
