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

constexpr std::int64_t rows_per_strip = 128;

/// A block takes a strip: 128 rows of as many columns as a warp reads at a time. `largest` begins
/// as 0; a maximum does not depend on the order.
template <int size, class T>
void largest_of_columns(Rows<const T> x, MagnitudeBits<T>* largest, Extent extent,
                        cudaStream_t stream) {
  using Bits = MagnitudeBits<T>;
  constexpr int columns = 32 * size;
  const std::int64_t across = (extent.width + columns - 1) / columns;
  const std::int64_t blocks = (extent.rows + rows_per_strip - 1) / rows_per_strip * across;
  launch({"largest_of_columns",
          blocks,
          sizeof(Bits) * columns * warps_per_block,
          stream,
          {reads(x, extent), writes(largest, extent.width)}},
         [=] __device__(std::int64_t block, unsigned char* shared) {
           auto* const of_warps = reinterpret_cast<Bits*>(shared);
           const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
           const std::int64_t first = block / across * rows_per_strip;
           const std::int64_t last =
               first + rows_per_strip < extent.rows ? first + rows_per_strip : extent.rows;
           const std::int64_t column = block % across * columns;
           Bits most[size] = {};
           if (column + lane * size < extent.width)
             for (std::int64_t row = first + warp; row < last; row += warps_per_block) {
               const auto pack = load<size>(x.data + row * x.stride + column + lane * size);
               for (int k = 0; k < size; ++k) most[k] = Max{}(most[k], magnitude(pack.items[k]));
             }
           for (int k = 0; k < size; ++k) of_warps[warp * columns + lane * size + k] = most[k];
           __syncthreads();
           for (std::int64_t i = threadIdx.x; i < columns; i += blockDim.x) {
             if (column + i >= extent.width) break;
             Bits all = 0;
             for (int w = 0; w < warps_per_block; ++w) all = Max{}(all, of_warps[w * columns + i]);
             atomicMax(largest + column + i, all);
           }
           __syncthreads();
         });
}

}  // namespace

template <class T>
void largest_magnitudes(Rows<const T> x, MagnitudeBits<T>* largest, ScaledLines lines,
                        Extent extent, cudaStream_t stream) {
  constexpr int size = pack_size<T>;
  const bool packed = rows_fit(size, extent.width, x);
  if (lines == ScaledLines::columns)
    packed ? largest_of_columns<size>(x, largest, extent, stream)
           : largest_of_columns<1>(x, largest, extent, stream);
  else
    packed ? largest_of_rows<size>(x, largest, lines == ScaledLines::all, extent, stream)
           : largest_of_rows<1>(x, largest, lines == ScaledLines::all, extent, stream);
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
#define TESSERA_INSTANTIATE(T)                                                            \
  template void largest_magnitudes(Rows<const T>, MagnitudeBits<T>*, ScaledLines, Extent, \
                                   cudaStream_t);
TESSERA_FOR_TYPES(TESSERA_INSTANTIATE)

}  // namespace tessera::kernels::device
