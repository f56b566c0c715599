// SPDX-License-Identifier: Apache-2.0
// Matrices rounded to 8-bit floating point on the device: largest magnitudes, scales and bytes.
#include "cuda/launch.cuh"
#include "float8_formats.hpp"

#if defined(__CUDACC__)
#include <cuda_fp8.h>
#endif

namespace tessera::kernels::device {
namespace {

/// The magnitude's bits order as magnitudes do, and those of a NaN are above all others.
template <class T>
__device__ MagnitudeBits<T> magnitude(T value) {
  using Bits = MagnitudeBits<T>;
  const Compute<T> v = wide(value);
  return bits_as<Bits>(v) & static_cast<Bits>(~Bits{0} >> 1);
}

struct Larger {
  template <class V>
  __device__ V operator()(V a, V b) const {
    return a < b ? b : a;
  }
};

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
             for (int k = 0; k < size; ++k) most = Larger{}(most, magnitude(pack.items[k]));
           }
           most = reduce_block(most, reinterpret_cast<Bits*>(shared), Larger{});
           if (threadIdx.x != 0) return;
           if (one_for_all)
             atomicMax(largest, most);
           else
             largest[row] = most;
         });
}

constexpr std::int64_t rows_per_strip = 128;
constexpr int warps = threads_per_block / 32;

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
          sizeof(Bits) * columns * warps,
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
             for (std::int64_t row = first + warp; row < last; row += warps) {
               const auto pack = load<size>(x.data + row * x.stride + column + lane * size);
               for (int k = 0; k < size; ++k) most[k] = Larger{}(most[k], magnitude(pack.items[k]));
             }
           for (int k = 0; k < size; ++k) of_warps[warp * columns + lane * size + k] = most[k];
           __syncthreads();
           for (std::int64_t i = threadIdx.x; i < columns; i += blockDim.x) {
             if (column + i >= extent.width) break;
             Bits all = 0;
             for (int w = 0; w < warps; ++w) all = Larger{}(all, of_warps[w * columns + i]);
             atomicMax(largest + column + i, all);
           }
           __syncthreads();
         });
}

/// Neighbours as bytes. The hardware's conversion has the bits of Format's, but for a NaN's sign.
template <class Format, int size>
__device__ Pack<std::uint8_t, size> bytes_of(const float (&values)[size]) {
  Pack<std::uint8_t, size> bytes;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  constexpr auto format = Format::largest == E4m3::largest ? __NV_E4M3 : __NV_E5M2;
  if constexpr (size % 2 == 0) {
    for (int k = 0; k < size; k += 2) {
      const auto two = __nv_cvt_float2_to_fp8x2({values[k], values[k + 1]}, __NV_SATFINITE, format);
      bytes.items[k] = static_cast<std::uint8_t>(two & 0xff);
      bytes.items[k + 1] = static_cast<std::uint8_t>(two >> 8);
    }
  } else {
    for (int k = 0; k < size; ++k)
      bytes.items[k] = __nv_cvt_float_to_fp8(values[k], __NV_SATFINITE, format);
  }
#else
  for (int k = 0; k < size; ++k) bytes.items[k] = Format::byte_of(values[k]);
#endif
  return bytes;
}

template <class Format, int size, class T>
void bytes_by_rows(Rows<const T> x, const float* scales, int step, std::uint8_t* bytes,
                   Extent extent, cudaStream_t stream) {
  launch({"float8_by_rows",
          extent.rows,
          0,
          stream,
          {reads(x, extent), reads(scales, step == 0 ? 1 : extent.rows),
           writes(bytes, extent.rows * extent.width)}},
         [=] __device__(std::int64_t row, unsigned char*) {
           const float scale = scales[row * step];
           for (std::int64_t i = threadIdx.x * size; i < extent.width; i += blockDim.x * size) {
             const auto pack = load<size>(x.data + row * x.stride + i);
             float scaled[size];
             for (int k = 0; k < size; ++k)
               scaled[k] = static_cast<float>(wide(pack.items[k]) * scale);
             store<size>(bytes + row * extent.width + i, bytes_of<Format>(scaled));
           }
         });
}

/// Of a tile: 128 rows of 64 columns; in shared memory its columns are tile_pitch bytes apart, so
/// that lanes meet in few banks. A thread moves a run of 4 rows, one word, of a column.
constexpr int tile_rows = 128, tile_columns = 64, tile_run = 4, tile_pitch = tile_rows + tile_run;

/// Rounds the run of rows at `from`, of which `rows` are there, for `size` columns: a word of
/// `words` for each, tile_pitch apart.
template <class Format, int size, class T>
__device__ void round_run(const T* from, std::int64_t stride, std::int64_t rows,
                          const float (&scale)[size], unsigned char* words) {
  Pack<std::uint8_t, size> rounded[tile_run] = {};
  for (int r = 0; r < tile_run; ++r) {
    if (r >= rows) break;
    const auto pack = load<size>(from + r * stride);
    float scaled[size];
    for (int k = 0; k < size; ++k) scaled[k] = static_cast<float>(wide(pack.items[k]) * scale[k]);
    rounded[r] = bytes_of<Format>(scaled);
  }
  for (int k = 0; k < size; ++k) {
    Pack<std::uint8_t, tile_run> word;
    for (int r = 0; r < tile_run; ++r) word.items[r] = rounded[r].items[k];
    store<tile_run>(words + k * tile_pitch, word);
  }
}

/// bytes [width, rows]: transposed.
template <class Format, int size, class T>
void bytes_by_columns(Rows<const T> x, const float* scales, int step, std::uint8_t* bytes,
                      Extent extent, cudaStream_t stream) {
  const std::int64_t across = (extent.width + tile_columns - 1) / tile_columns;
  const std::int64_t blocks = (extent.rows + tile_rows - 1) / tile_rows * across;
  const auto body = [=] __device__(std::int64_t block, unsigned char* shared) {
    constexpr int lanes = tile_columns / size;
    const std::int64_t row = block / across * tile_rows, column = block % across * tile_columns;
    const int lane = threadIdx.x % lanes;
    const std::int64_t mine = column + lane * size;
    if (mine < extent.width) {
      float scale[size];
      for (int k = 0; k < size; ++k) scale[k] = scales[(mine + k) * step];
      for (int r = threadIdx.x / lanes * tile_run; r < tile_rows;
           r += threads_per_block / lanes * tile_run)
        if (row + r < extent.rows)
          round_run<Format>(x.data + (row + r) * x.stride + mine, x.stride, extent.rows - row - r,
                            scale, shared + lane * size * tile_pitch + r);
    }
    __syncthreads();
    constexpr int runs = tile_rows / tile_run;
    for (int i = threadIdx.x; i < tile_columns * runs; i += threads_per_block) {
      const int c = i / runs, r = i % runs * tile_run;
      if (column + c >= extent.width || row + r >= extent.rows) continue;
      std::uint8_t* const to = bytes + (column + c) * extent.rows + row + r;
      const auto word = load<tile_run>(shared + c * tile_pitch + r);
      if (extent.rows % tile_run == 0)
        store<tile_run>(to, word);
      else
        for (int k = 0; k < tile_run && row + r + k < extent.rows; ++k) to[k] = word.items[k];
    }
    __syncthreads();
  };
  launch({"float8_by_columns",
          blocks,
          tile_columns * tile_pitch,
          stream,
          {reads(x, extent), reads(scales, step == 0 ? 1 : extent.width),
           writes(bytes, extent.rows * extent.width)}},
         body);
}

template <class Format, class T>
void bytes_of_format(Rows<const T> x, const float* scales, int step, bool transposed,
                     std::uint8_t* bytes, Extent extent, cudaStream_t stream) {
  constexpr int size = pack_size<T>;
  const bool packed = rows_fit(size, extent.width, x);
  if (transposed)
    packed ? bytes_by_columns<Format, size>(x, scales, step, bytes, extent, stream)
           : bytes_by_columns<Format, 1>(x, scales, step, bytes, extent, stream);
  else
    packed ? bytes_by_rows<Format, size>(x, scales, step, bytes, extent, stream)
           : bytes_by_rows<Format, 1>(x, scales, step, bytes, extent, stream);
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
void float8_scales(const C* largest, float* scales, std::int64_t count, double most,
                   bool powers_of_two, cudaStream_t stream) {
  launch({"float8_scales",
          (count + threads_per_block - 1) / threads_per_block,
          0,
          stream,
          {reads(largest, count), writes(scales, count)}},
         [=] __device__(std::int64_t block, unsigned char*) {
           const std::int64_t i = block * threads_per_block + threadIdx.x;
           if (i >= count) return;
           const double size = largest[i];
           const auto scale = static_cast<float>(most / (size < 1e-12 ? 1e-12 : size));
           // Without the mantissa, but for a NaN.
           scales[i] = powers_of_two && scale == scale
                           ? bits_as<float>(bits_as<std::uint32_t>(scale) & 0xff800000u)
                           : scale;
         });
}

template <class T>
void float8_bytes(Rows<const T> x, const float* scales, int step, Float8Bytes how,
                  std::uint8_t* bytes, Extent extent, cudaStream_t stream) {
  how.has_infinities
      ? bytes_of_format<E5m2>(x, scales, step, how.transposed, bytes, extent, stream)
      : bytes_of_format<E4m3>(x, scales, step, how.transposed, bytes, extent, stream);
}

template void float8_scales(const float*, float*, std::int64_t, double, bool, cudaStream_t);
template void float8_scales(const double*, float*, std::int64_t, double, bool, cudaStream_t);
#define TESSERA_INSTANTIATE(T)                                                                     \
  template void largest_magnitudes(Rows<const T>, MagnitudeBits<T>*, ScaledLines, Extent,          \
                                   cudaStream_t);                                                  \
  template void float8_bytes(Rows<const T>, const float*, int, Float8Bytes, std::uint8_t*, Extent, \
                             cudaStream_t);
TESSERA_FOR_TYPES(TESSERA_INSTANTIATE)

}  // namespace tessera::kernels::device
