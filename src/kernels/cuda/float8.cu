// SPDX-License-Identifier: Apache-2.0
// Matrices rounded to 8-bit floating point on the device: their bytes.
#include "cuda/float8.cuh"

namespace tessera::kernels::device {
namespace {

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
             store<size>(bytes + row * extent.width + i,
                         rounded<Format>(pack, [&](int) { return scale; }));
           }
         });
}

/// Largest magnitude, scale and bytes of each row. A thread holds `held` packs of it; what is
/// beyond is read twice. One thread divides for all.
template <class Format, int size, int held, class T>
void round_rows(Rows<const T> x, bool powers_of_two, float* scales, float* inverses,
                std::uint8_t* bytes, Extent extent, cudaStream_t stream) {
  using Bits = MagnitudeBits<T>;
  const auto body = [=] __device__(std::int64_t row, unsigned char* shared) {
    constexpr std::int64_t step = threads_per_block * size;
    const T* const data = x.data + row * x.stride;
    Pack<T, size> packs[held] = {};
    Bits most = 0;
#pragma unroll
    for (int p = 0; p < held; ++p) {
      const std::int64_t i = p * step + threadIdx.x * size;
      if (i >= extent.width) break;
      packs[p] = load<size>(data + i);
    }
#pragma unroll
    for (int p = 0; p < held; ++p)
      for (int k = 0; k < size; ++k) most = Max{}(most, magnitude(packs[p].items[k]));
    for (std::int64_t i = held * step + threadIdx.x * size; i < extent.width; i += step) {
      const auto pack = load<size>(data + i);
      for (int k = 0; k < size; ++k) most = Max{}(most, magnitude(pack.items[k]));
    }
    most = reduce_block(most, reinterpret_cast<Bits*>(shared), Max{});
    auto* const of_row = reinterpret_cast<float*>(shared + sizeof(Bits) * 32);
    if (threadIdx.x == 0) {
      *of_row = scale_for(bits_as<Compute<T>>(most), Format::largest, powers_of_two);
      scales[row] = *of_row;
      inverses[row] = 1 / *of_row;
    }
    __syncthreads();
    const float scale = *of_row;
    const auto write = [&](std::int64_t i, const Pack<T, size>& pack) {
      store<size>(bytes + row * extent.width + i,
                  rounded<Format>(pack, [&](int) { return scale; }));
    };
#pragma unroll
    for (int p = 0; p < held; ++p) {
      const std::int64_t i = p * step + threadIdx.x * size;
      if (i >= extent.width) break;
      write(i, packs[p]);
    }
    for (std::int64_t i = held * step + threadIdx.x * size; i < extent.width; i += step)
      write(i, load<size>(data + i));
    __syncthreads();
  };
  launch({"float8_rows",
          extent.rows,
          sizeof(Bits) * 32 + sizeof(float),
          stream,
          {reads(x, extent), writes(scales, extent.rows), writes(inverses, extent.rows),
           writes(bytes, extent.rows * extent.width)}},
         body);
}

template <class Format, int size, class T>
void round_rows(Rows<const T> x, bool powers_of_two, float* scales, float* inverses,
                std::uint8_t* bytes, Extent extent, cudaStream_t stream) {
  const std::int64_t packs =
      (extent.width + threads_per_block * size - 1) / (threads_per_block * size);
  if (packs <= 2)
    round_rows<Format, size, 2>(x, powers_of_two, scales, inverses, bytes, extent, stream);
  else if (packs <= 4)
    round_rows<Format, size, 4>(x, powers_of_two, scales, inverses, bytes, extent, stream);
  else
    round_rows<Format, size, 8>(x, powers_of_two, scales, inverses, bytes, extent, stream);
}

/// Of a tile: 128 rows of 64 columns; in shared memory its columns are tile_pitch bytes apart, so
/// that lanes meet in few banks. A thread moves a run of 4 rows, one word, of a column.
constexpr int tile_rows = 128, tile_columns = 64, tile_run = 4, tile_pitch = tile_rows + tile_run;

/// Rounds the run of rows at `from`, of which `rows` are there, for `size` columns: a word of
/// `words` for each, tile_pitch apart.
template <class Format, int size, class T>
__device__ void round_run(const T* from, std::int64_t stride, std::int64_t rows,
                          const float (&scale)[size], unsigned char* words) {
  Pack<std::uint8_t, size> bytes[tile_run] = {};
  for (int r = 0; r < tile_run; ++r) {
    if (r >= rows) break;
    bytes[r] = rounded<Format>(load<size>(from + r * stride), [&](int k) { return scale[k]; });
  }
  for (int k = 0; k < size; ++k) {
    Pack<std::uint8_t, tile_run> word;
    for (int r = 0; r < tile_run; ++r) word.items[r] = bytes[r].items[k];
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
void float8_bytes(Rows<const T> x, const float* scales, int step, Float8Bytes how,
                  std::uint8_t* bytes, Extent extent, cudaStream_t stream) {
  how.has_infinities
      ? bytes_of_format<E5m2>(x, scales, step, how.transposed, bytes, extent, stream)
      : bytes_of_format<E4m3>(x, scales, step, how.transposed, bytes, extent, stream);
}

template <class T>
void float8_rows(Rows<const T> x, bool has_infinities, bool powers_of_two, float* scales,
                 float* inverses, std::uint8_t* bytes, Extent extent, cudaStream_t stream) {
  constexpr int size = pack_size<T>;
  const auto round = [&]<class Format>(Format) {
    rows_fit(size, extent.width, x)
        ? round_rows<Format, size>(x, powers_of_two, scales, inverses, bytes, extent, stream)
        : round_rows<Format, 1>(x, powers_of_two, scales, inverses, bytes, extent, stream);
  };
  has_infinities ? round(E5m2{}) : round(E4m3{});
}

#define TESSERA_INSTANTIATE(T)                                                                     \
  template void float8_bytes(Rows<const T>, const float*, int, Float8Bytes, std::uint8_t*, Extent, \
                             cudaStream_t);                                                        \
  template void float8_rows(Rows<const T>, bool, bool, float*, float*, std::uint8_t*, Extent,      \
                            cudaStream_t);
TESSERA_FOR_TYPES(TESSERA_INSTANTIATE)

}  // namespace tessera::kernels::device
