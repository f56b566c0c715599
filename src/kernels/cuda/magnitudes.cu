// SPDX-License-Identifier: Apache-2.0
// Matrices rounded to 8-bit floating point on the device: largest magnitudes and scales.
#include "cuda/float8.cuh"

namespace tessera::kernels::device {
namespace {

/// A block of threads for each row. With one result for all rows, `largest` begins as 0.
template <int size, class T>
void largest_of_rows(Rows<const T> x, MagnitudeBits<T>* largest, bool one_for_all, Extent extent,
                     cudaStream_t stream) {
  using Bits = MagnitudeBits<T>;
  launch({"largest_of_rows",
          extent.rows,
          sizeof(Bits) * 32,
          stream,
          {reads(x, extent), writes(largest, one_for_all ? 1 : extent.rows)}},
         [=] __device__(std::int64_t row, unsigned char* shared) {
           Bits most = 0;
           const T* const data = x.data + row * x.stride;
           for (std::int64_t i = threadIdx.x * size; i < extent.width; i += blockDim.x * size) {
             const auto pack = load<size>(data + i);
             for (int k = 0; k < size; ++k) most = Max{}(most, magnitude(pack.items[k]));
           }
           most = reduce_block(most, reinterpret_cast<Bits*>(shared), Max{});
           if (threadIdx.x != 0) return;
           if (one_for_all)
             atomicMax(largest, most);
           else
             largest[row] = most;
         });
}

/// Of a warp's values; every lane gets it.
__device__ inline unsigned warp_largest(unsigned bits) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  return __reduce_max_sync(0xffffffffu, bits);
#else
  return reduce_warp(bits, Max{});
#endif
}
__device__ inline unsigned long long warp_largest(unsigned long long bits) {
  return reduce_warp(bits, Max{});
}

/// Rows of a strip, and how many of them a warp has on their way at a time.
constexpr std::int64_t rows_per_strip = 128;
constexpr int rows_together = 4;
static_assert(rows_per_strip % (rows_together * warps_per_block) == 0 &&
              rows_per_strip <= threads_per_block);

/// A block takes a strip: 128 rows of as many columns as a warp reads at a time. `of_columns` and,
/// with_rows, `of_rows` begin as 0; a maximum does not depend on the order.
template <int size, bool with_rows, class T>
void largest_of_columns(Rows<const T> x, MagnitudeBits<T>* of_rows, MagnitudeBits<T>* of_columns,
                        Extent extent, cudaStream_t stream) {
  using Bits = MagnitudeBits<T>;
  constexpr int columns = 32 * size;
  const std::int64_t across = (extent.width + columns - 1) / columns;
  const std::int64_t blocks = (extent.rows + rows_per_strip - 1) / rows_per_strip * across;
  const auto body = [=] __device__(std::int64_t block, unsigned char* shared) {
    auto* const of_warps = reinterpret_cast<Bits*>(shared);
    Bits* const of_strip = of_warps + warps_per_block * columns;  // a number for each row
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const std::int64_t first = block / across * rows_per_strip;
    const std::int64_t last =
        first + rows_per_strip < extent.rows ? first + rows_per_strip : extent.rows;
    const std::int64_t column = block % across * columns;
    const bool inside = column + lane * size < extent.width;
    Bits most[size] = {};
    for (std::int64_t row = first + warp; row < last; row += rows_together * warps_per_block) {
      Pack<T, size> packs[rows_together] = {};
#pragma unroll
      for (int r = 0; r < rows_together; ++r)
        if (inside && row + r * warps_per_block < last)
          packs[r] =
              load<size>(x.data + (row + r * warps_per_block) * x.stride + column + lane * size);
#pragma unroll
      for (int r = 0; r < rows_together; ++r) {
        Bits of_row = 0;
        for (int k = 0; k < size; ++k) {
          const Bits bits = magnitude(packs[r].items[k]);
          most[k] = Max{}(most[k], bits);
          of_row = Max{}(of_row, bits);
        }
        if (with_rows) {
          of_row = warp_largest(of_row);
          if (lane == 0) of_strip[row - first + r * warps_per_block] = of_row;
        }
      }
    }
    for (int k = 0; k < size; ++k) of_warps[warp * columns + lane * size + k] = most[k];
    __syncthreads();
    for (std::int64_t i = threadIdx.x; i < columns; i += blockDim.x) {
      if (column + i >= extent.width) break;
      Bits all = 0;
      for (int w = 0; w < warps_per_block; ++w) all = Max{}(all, of_warps[w * columns + i]);
      atomicMax(of_columns + column + i, all);
    }
    // Neighbours at once: one atomic operation for each row as it comes would take longer.
    if (with_rows && threadIdx.x < last - first)
      atomicMax(of_rows + first + threadIdx.x, of_strip[threadIdx.x]);
    __syncthreads();
  };
  launch({with_rows ? "largest_of_rows_and_columns" : "largest_of_columns",
          blocks,
          sizeof(Bits) * (columns * warps_per_block + (with_rows ? rows_per_strip : 0)),
          stream,
          {reads(x, extent), writes(of_rows, with_rows ? extent.rows : 0),
           writes(of_columns, extent.width)}},
         body);
}

}  // namespace

template <class T>
void largest_magnitudes(Rows<const T> x, MagnitudeBits<T>* largest, ScaledLines lines,
                        Extent extent, cudaStream_t stream) {
  constexpr int size = pack_size<T>;
  const bool packed = rows_fit(size, extent.width, x);
  MagnitudeBits<T>* const nothing = nullptr;
  if (lines == ScaledLines::columns)
    packed ? largest_of_columns<size, false>(x, nothing, largest, extent, stream)
           : largest_of_columns<1, false>(x, nothing, largest, extent, stream);
  else
    packed ? largest_of_rows<size>(x, largest, lines == ScaledLines::all, extent, stream)
           : largest_of_rows<1>(x, largest, lines == ScaledLines::all, extent, stream);
}

template <class T>
void largest_of_both(Rows<const T> x, MagnitudeBits<T>* of_rows, MagnitudeBits<T>* of_columns,
                     Extent extent, cudaStream_t stream) {
  constexpr int size = pack_size<T>;
  rows_fit(size, extent.width, x)
      ? largest_of_columns<size, true>(x, of_rows, of_columns, extent, stream)
      : largest_of_columns<1, true>(x, of_rows, of_columns, extent, stream);
}

template <class C>
void float8_scales(const C* largest, float* scales, float* inverses, std::int64_t count,
                   double most, bool powers_of_two, cudaStream_t stream) {
  launch({"float8_scales",
          (count + threads_per_block - 1) / threads_per_block,
          0,
          stream,
          {reads(largest, count), writes(scales, count), writes(inverses, count)}},
         [=] __device__(std::int64_t block, unsigned char*) {
           const std::int64_t i = block * threads_per_block + threadIdx.x;
           if (i >= count) return;
           const float scale = scale_for(largest[i], most, powers_of_two);
           scales[i] = scale;
           inverses[i] = 1 / scale;
         });
}

template void float8_scales(const float*, float*, float*, std::int64_t, double, bool, cudaStream_t);
template void float8_scales(const double*, float*, float*, std::int64_t, double, bool,
                            cudaStream_t);
#define TESSERA_INSTANTIATE(T)                                                               \
  template void largest_magnitudes(Rows<const T>, MagnitudeBits<T>*, ScaledLines, Extent,    \
                                   cudaStream_t);                                            \
  template void largest_of_both(Rows<const T>, MagnitudeBits<T>*, MagnitudeBits<T>*, Extent, \
                                cudaStream_t);
TESSERA_FOR_TYPES(TESSERA_INSTANTIATE)

}  // namespace tessera::kernels::device
