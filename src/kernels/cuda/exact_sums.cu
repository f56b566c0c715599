// SPDX-License-Identifier: Apache-2.0
// Sums of squares without rounding on the device, for deterministic runs.
#include "cuda/tiles.cuh"
#include "fixed_point.hpp"

namespace tessera::kernels::device {

namespace {

/// Values that a thread holds at a time.
template <class T>
constexpr int exact_values = sizeof(T) == 8 ? 8 : 16;

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
    // A number of the power p has squares down to 2^(2p - 46): p is at least half of 77 - 46 below.
    const int power = (exponent - 1023 - 30 + (1 << 12)) / 2 - (1 << 11) + 127;
    least_ = power > 0 ? static_cast<unsigned>(power) << 23 : 1;
  }
  /// Returns what is finer than the three grids.
  __device__ double add(double x) {
    x = take(x, coarse_, sums_[0]);
    x = take(x, coarse_ * 0x1p-39, sums_[1]);
    return take(x, coarse_ * 0x1p-78, sums_[2]);
  }
  /// Adds the square of a number of 24 bits to two of the grids. They end 77 bits below the largest
  /// square's first one, so that they hold the whole square if the number is least() or more.
  __device__ void add_square(double x) {
    const Parts parts = parts_of(x);
    sums_[0] += parts.coarse;
    sums_[1] += parts.fine;
  }
  /// As bits of a float32; 1 or more.
  __device__ unsigned least() const { return least_; }
  /// Adds what add_square() left of x * x. Returns what is finer than the three grids.
  __device__ double add_rest(double x) {
    return take(parts_of(x).rest, coarse_ * 0x1p-78, sums_[2]);
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
  /// Of a square, which is exact in float64: what two of the grids hold, and the rest.
  struct Parts {
    double coarse, fine, rest;
  };
  __device__ Parts parts_of(double x) const {
    const double coarse = fma(x, x, coarse_) - coarse_, left = fma(x, x, -coarse);
    const double grid = coarse_ * 0x1p-39, fine = (left + grid) - grid;
    return {coarse, fine, left - fine};
  }
  __device__ static double take(double x, double grid, double& sum) {
    const double part = (x + grid) - grid;
    sum += part;
    return x - part;
  }

  int exponent_ = 0;
  unsigned least_ = 1;
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
__device__ void add_each(const double (&numbers)[exact_values<double>], const Digits& digits) {
#pragma unroll
  for (int k = 0; k < exact_values<double>; ++k)
    if (numbers[k] != 0) digits(numbers[k]);
}

/// The squares of a tile, in code without branches. What the grids cannot hold goes to the digits.
__device__ void add_doubles(const double (&tile)[exact_values<double>], WarpSquares& sums,
                            const Digits& digits) {
  double squares[exact_values<double>], rest[exact_values<double>];
  int largest = 0;
  bool outside = false;
#pragma unroll
  for (int k = 0; k < exact_values<double>; ++k) {
    const double square = tile[k] * tile[k];
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
  for (int k = 0; k < exact_values<double>; ++k) {
    rest[k] = sums.add(squares[k]);
    finer = finer || rest[k] != 0;
  }
  if (finer) add_each(rest, digits);
}

__device__ unsigned largest_of_warp(unsigned value) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  return __reduce_max_sync(0xffffffffu, value);
#else
  return reduce_warp(value, Max{});
#endif
}

/// Calls use(x) for those of a thread's values of the tile at `at` that `which` has a bit for. They
/// are read again: there are few, and no register need keep a tile for them.
template <int size, class T, class Use>
__device__ void for_few(const T* values, std::int64_t at, std::int64_t last, unsigned which,
                        const Use& use) {
#pragma unroll 1
  for (int k = 0; k < exact_values<T>; ++k) {
    const std::int64_t i = place<size>(at, k);
    if ((which >> k & 1) != 0 && i < last) use(static_cast<double>(wide(values[i])));
  }
}

/// The squares of float32 or bfloat16 numbers: products of 24 bits are exact in float64, and each
/// finite one is on the grids.
template <int size, class T>
__device__ void add_single(const T (&tile)[exact_values<T>], const T* values, std::int64_t at,
                           std::int64_t last, WarpSquares& sums, const Digits& digits) {
  unsigned largest = 0;
#pragma unroll
  for (int k = 0; k < exact_values<T>; ++k) largest = Max{}(largest, magnitude(tile[k]));
  largest = largest_of_warp(largest);
  if (largest == 0) return;
  if (largest >= 0x7f800000u)
    return for_few<size>(values, at, last, ~0u, [&](double x) { digits(x * x); });
  const double most = static_cast<double>(bits_as<float>(largest));
  const int exponent = biased_exponent(most * most);
  if (exponent > sums.exponent()) {
    sums.deposit(digits);
    sums.follow(exponent);
  }
  unsigned which = 0;
#pragma unroll
  for (int k = 0; k < exact_values<T>; ++k) {
    sums.add_square(wide(tile[k]));
    which |= magnitude(tile[k]) - 1 < sums.least() - 1 ? 1u << k : 0;
  }
  if (which == 0) return;
  for_few<size>(values, at, last, which, [&](double x) {
    const double rest = sums.add_rest(x);
    if (rest != 0) digits(rest);
  });
}

template <int size, class T>
void exact_squares(const T* values, std::int64_t count, std::int64_t* words, cudaStream_t stream) {
  using Word = unsigned long long;
  const std::int64_t blocks = (count + squares_per_block - 1) / squares_per_block;
  launch<sizeof(T) == 8 ? 2 : 4>(
      {"exact_squares",
       blocks,
       sizeof(Word) * fixed_point::word_count,
       stream,
       {reads(values, count), writes(words, fixed_point::word_count)}},
      [=] __device__(std::int64_t block, unsigned char* shared) {
        const Digits digits{reinterpret_cast<Word*>(shared)};
        for (int i = threadIdx.x; i < fixed_point::word_count; i += blockDim.x) digits.words[i] = 0;
        __syncthreads();
        WarpSquares sums;
        for_tiles<size, exact_values<T>>(
            values, count, block,
            [&](const T(&tile)[exact_values<T>], std::int64_t at, std::int64_t last) {
              if constexpr (std::is_same_v<T, double>)
                add_doubles(tile, sums, digits);
              else
                add_single<size>(tile, values, at, last, sums, digits);
            });
        sums.deposit(digits);
        __syncthreads();
        static_assert(fixed_point::word_count <= threads_per_block);
        if (threadIdx.x < fixed_point::word_count) {
          const std::int64_t digit = fixed_point::carried_once(
              reinterpret_cast<const std::int64_t*>(digits.words), threadIdx.x);
          if (digit != 0)
            atomicAdd(reinterpret_cast<Word*>(words) + threadIdx.x, static_cast<Word>(digit));
        }
        __syncthreads();
      });
}

}  // namespace

template <class T>
void exact_squares(const T* values, std::int64_t count, std::int64_t* words, cudaStream_t stream) {
  if (is_aligned(values, pack_size<T>))
    exact_squares<pack_size<T>>(values, count, words, stream);
  else
    exact_squares<1>(values, count, words, stream);
}

#define TESSERA_INSTANTIATE(T) \
  template void exact_squares(const T*, std::int64_t, std::int64_t*, cudaStream_t);
TESSERA_FOR_TYPES(TESSERA_INSTANTIATE)

}  // namespace tessera::kernels::device
