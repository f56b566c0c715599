// SPDX-License-Identifier: Apache-2.0
// Copies and sums of rows of many tensors: threads over packs of all targets together, so that
// blocks have equal work whatever the sizes are.
#include <algorithm>
#include <type_traits>

#include "cuda/launch.cuh"

namespace tessera::kernels::device {
namespace {

/// In one launch: what fits into the arguments of a kernel, 4 KiB.
constexpr int most_copies = 64;

/// Elements of a pack: 16 bytes or more of both types, so that the arithmetic of where it lies is
/// done for as many as can be.
template <class From, class To>
inline constexpr int put_size = std::max(pack_size<From>, pack_size<To>);
/// What a thread has under way. A sum also holds what it adds to: 64 bytes of that.
template <bool adds, class From, class To>
inline constexpr int packs_per_thread = adds ? std::max(4 * pack_size<To> / put_size<From, To>, 1)
                                             : 4;

struct Copies {
  RowsCopy copies[most_copies];
  std::int64_t ends[most_copies];  ///< packs of a row of all copies up to this one
  int count = 0;
};

/// Elements that move together: those of a row that one pack of the target has.
template <class From, class To>
struct Part {
  static constexpr int size = put_size<From, To>;
  const From* from;
  To* to;
  int count;  ///< at most `size`: then `to` is aligned
  int known;  ///< so many exist, and zeros follow
};

/// The copy that this pack of a row belongs to.
__device__ int copy_with(const Copies& all, std::int64_t pack) {
  int k = 0;
  for (int step = most_copies / 2; step > 0; step /= 2)
    if (k + step < all.count && all.ends[k + step - 1] <= pack) k += step;
  return k;
}

TESSERA_HD int clamped(std::int64_t v, int highest) {
  return v < 0 ? 0 : v > highest ? highest : static_cast<int>(v);
}

/// Part `number` of a row. Packs are counted from the one in which the row begins.
template <class From, class To>
__device__ Part<From, To> part_of(const RowsCopy& copy, std::int64_t row, std::int64_t number) {
  constexpr int size = put_size<From, To>;
  const From* const from = static_cast<const From*>(copy.from) + row * copy.from_stride;
  To* const to = static_cast<To*>(copy.to) + row * copy.to_stride;
  const auto before = static_cast<int>(reinterpret_cast<std::uintptr_t>(to) / sizeof(To) % size);
  const std::int64_t begin = number * size - before, first = begin < 0 ? 0 : begin;
  const std::int64_t end = begin + size < copy.width ? begin + size : copy.width;
  const int count = clamped(end - first, size);
  return {from + first, to + first, count,
          clamped(copy.count - row * copy.from_stride - first, count)};
}

template <class To, class From>
__device__ To converted(From v) {
  if constexpr (std::is_same_v<To, From>)
    return v;
  else
    return narrow<To>(static_cast<Compute<To>>(wide(v)));
}

template <class From, class To>
__device__ Pack<From, Part<From, To>::size> read(const Part<From, To>& part) {
  constexpr int size = Part<From, To>::size;
  if (part.known == size &&
      reinterpret_cast<std::uintptr_t>(part.from) % (size * sizeof(From)) == 0)
    return load<size>(part.from);
  Pack<From, size> values;
#pragma unroll
  for (int i = 0; i < size; ++i) values.items[i] = i < part.known ? part.from[i] : From{};
  return values;
}

/// What the values are added to; nothing where they replace it.
template <bool adds, class From, class To>
__device__ Pack<To, Part<From, To>::size> target_of(const Part<From, To>& part) {
  constexpr int size = Part<From, To>::size;
  Pack<To, size> before{};
  if constexpr (adds) {
    if (part.count == size) return load<size>(part.to);
#pragma unroll
    for (int i = 0; i < size; ++i)
      if (i < part.count) before.items[i] = part.to[i];
  }
  return before;
}

template <bool adds, class From, class To>
__device__ void write(const Part<From, To>& part, const Pack<From, Part<From, To>::size>& values,
                      const Pack<To, Part<From, To>::size>& before) {
  constexpr int size = Part<From, To>::size;
  Pack<To, size> result;
#pragma unroll
  for (int i = 0; i < size; ++i) {
    result.items[i] = converted<To>(values.items[i]);
    if constexpr (adds) result.items[i] = before.items[i] + result.items[i];
  }
  if (part.count == size) return store<size>(part.to, result);
#pragma unroll
  for (int i = 0; i < size; ++i)
    if (i < part.count) part.to[i] = result.items[i];
}

/// A thread loads all its packs before it converts and stores one: enough is under way then.
template <bool adds, class From, class To>
__device__ void put_packs(const Copies& all, std::int64_t row, std::int64_t first) {
  constexpr int packs = packs_per_thread<adds, From, To>, size = Part<From, To>::size;
  Part<From, To> parts[packs];
  Pack<From, size> values[packs];
  Pack<To, size> before[packs];
  int k = copy_with(all, first);
#pragma unroll
  for (int i = 0; i < packs; ++i) {
    const std::int64_t pack = first + i * threads_per_block + threadIdx.x;
    while (k + 1 < all.count && all.ends[k] <= pack) ++k;
    parts[i] = part_of<From, To>(all.copies[k], row, pack - (k == 0 ? 0 : all.ends[k - 1]));
    values[i] = read(parts[i]);
    before[i] = target_of<adds>(parts[i]);
  }
#pragma unroll
  for (int i = 0; i < packs; ++i) write<adds>(parts[i], values[i], before[i]);
}

/// Packs that hold a row of the target: one more where rows begin within one.
template <class From, class To>
std::int64_t packs_of_row(const RowsCopy& copy, std::int64_t rows) {
  constexpr int size = put_size<From, To>;
  const bool aligned = is_aligned(static_cast<const To*>(copy.to), size) &&
                       (rows == 1 || copy.to_stride % size == 0);
  return (copy.width + (aligned ? 0 : size - 1) + size - 1) / size;
}

template <class From, class To>
std::vector<Operand> operands_of(const Copies& all, std::int64_t rows) {
  std::vector<Operand> operands;
  for (int k = 0; k < all.count; ++k) {
    const auto& [from, to, from_stride, to_stride, width, count] = all.copies[k];
    const auto* const begin = static_cast<const From*>(from);
    operands.push_back(from_stride == width
                           ? reads(begin, count < rows * width ? count : rows * width)
                           : reads(Rows<const From>{begin, from_stride}, {rows, width}));
    operands.push_back(writes(Rows<To>{static_cast<To*>(to), to_stride}, {rows, width}));
  }
  return operands;
}

template <bool adds, class From, class To>
void launch_puts(const Copies& all, std::int64_t rows, cudaStream_t stream) {
  if (all.count == 0) return;
  constexpr int packs_per_block = packs_per_thread<adds, From, To> * threads_per_block;
  const std::int64_t blocks_per_row =
      (all.ends[all.count - 1] + packs_per_block - 1) / packs_per_block;
  launch({adds ? "add_rows" : "copy_rows", rows * blocks_per_row, 0, stream,
          operands_of<From, To>(all, rows)},
         [=] __device__(std::int64_t block, unsigned char*) {
           put_packs<adds, From, To>(all, block / blocks_per_row,
                                     block % blocks_per_row * packs_per_block);
         });
}

template <bool adds, class From, class To>
void put_rows(std::span<const RowsCopy> copies, std::int64_t rows, cudaStream_t stream) {
  Copies all{};
  std::int64_t packs = 0;
  for (const RowsCopy& copy : copies) {
    if (copy.width == 0) continue;
    if (all.count == most_copies) {
      launch_puts<adds, From, To>(all, rows, stream);
      all.count = 0;
      packs = 0;
    }
    all.copies[all.count] = copy;
    all.ends[all.count++] = packs += packs_of_row<From, To>(copy, rows);
  }
  launch_puts<adds, From, To>(all, rows, stream);
}

}  // namespace

template <class From, class To>
void copy_rows(std::span<const RowsCopy> copies, std::int64_t rows, cudaStream_t stream) {
  put_rows<false, From, To>(copies, rows, stream);
}

template <class T>
void add_rows(std::span<const RowsCopy> copies, std::int64_t rows, cudaStream_t stream) {
  put_rows<true, T, Compute<T>>(copies, rows, stream);
}

#define TESSERA_INSTANTIATE(From, To) \
  template void copy_rows<From, To>(std::span<const RowsCopy>, std::int64_t, cudaStream_t);
TESSERA_INSTANTIATE(std::uint8_t, std::uint8_t)
TESSERA_INSTANTIATE(std::uint16_t, std::uint16_t)
TESSERA_INSTANTIATE(std::uint32_t, std::uint32_t)
TESSERA_INSTANTIATE(std::uint64_t, std::uint64_t)
TESSERA_INSTANTIATE(double, float)
TESSERA_INSTANTIATE(double, Bf16)
TESSERA_INSTANTIATE(float, double)
TESSERA_INSTANTIATE(float, Bf16)
TESSERA_INSTANTIATE(Bf16, double)
TESSERA_INSTANTIATE(Bf16, float)
#undef TESSERA_INSTANTIATE
#define TESSERA_INSTANTIATE(T) \
  template void add_rows<T>(std::span<const RowsCopy>, std::int64_t, cudaStream_t);
TESSERA_FOR_TYPES(TESSERA_INSTANTIATE)

}  // namespace tessera::kernels::device
