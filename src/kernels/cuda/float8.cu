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

/// Values of a row that a warp takes by itself, and no thread waits for another warp.
template <int size>
constexpr std::int64_t short_row = 32 * 4 * size;

/// Largest magnitude, scale and bytes of each row, which `lanes` threads share: a block, or a warp
/// where rows have no more than short_row<size> values. A thread holds a few packs of it. What is
/// beyond is read again, and found in a cache: more packs in registers would leave space for fewer
/// blocks.
template <class Format, int size, int lanes, class T>
void round_rows(Rows<const T> x, bool powers_of_two, float* scales, float* inverses,
                std::uint8_t* bytes, Extent extent, cudaStream_t stream) {
  using Bits = MagnitudeBits<T>;
  constexpr bool whole_block = lanes == threads_per_block;
  constexpr int rows = threads_per_block / lanes, held = whole_block ? 2 : 4;
  const auto body = [=] __device__(std::int64_t block, unsigned char* shared) {
    constexpr std::int64_t step = lanes * size;
    const int lane = threadIdx.x % lanes;
    const std::int64_t row = block * rows + threadIdx.x / lanes;
    if (row >= extent.rows) return;  // all lanes
    const T* const data = x.data + row * x.stride;
    Pack<T, size> packs[held] = {};
    Bits most = 0;
#pragma unroll
    for (int p = 0; p < held; ++p) {
      const std::int64_t i = p * step + lane * size;
      if (i >= extent.width) break;
      packs[p] = load<size>(data + i);
    }
#pragma unroll
    for (int p = 0; p < held; ++p)
      for (int k = 0; k < size; ++k) most = Max{}(most, magnitude(packs[p].items[k]));
    const std::int64_t beyond = whole_block ? held * step + lane * size : extent.width;
    for (std::int64_t i = beyond; i < extent.width; i += step) {
      const auto pack = load<size>(data + i);
      for (int k = 0; k < size; ++k) most = Max{}(most, magnitude(pack.items[k]));
    }
    most = whole_block ? reduce_block(most, reinterpret_cast<Bits*>(shared), Max{})
                       : reduce_warp(most, Max{});
    const float scale = scale_for(bits_as<Compute<T>>(most), Format::largest, powers_of_two);
    if (lane == 0) {
      scales[row] = scale;
      inverses[row] = 1 / scale;
    }
    const auto write = [&](std::int64_t i, const Pack<T, size>& pack) {
      store<size>(bytes + row * extent.width + i,
                  rounded<Format>(pack, [&](int) { return scale; }));
    };
#pragma unroll
    for (int p = 0; p < held; ++p) {
      const std::int64_t i = p * step + lane * size;
      if (i >= extent.width) break;
      write(i, packs[p]);
    }
    for (std::int64_t i = beyond; i < extent.width; i += step) write(i, load<size>(data + i));
  };
  launch<whole_block ? 6 : 5>(
      {"float8_rows",
       (extent.rows + rows - 1) / rows,
       sizeof(Bits) * 32,
       stream,
       {reads(x, extent), writes(scales, extent.rows), writes(inverses, extent.rows),
        writes(bytes, extent.rows * extent.width)}},
      body);
}

/// Of a tile: 256 rows of 64 columns; in shared memory its columns are tile_pitch bytes apart, so
/// that lanes meet in few banks. A thread moves a run of 4 rows, one word, of a column.
constexpr int tile_rows = 256, tile_columns = 64, tile_run = 4, tile_pitch = tile_rows + tile_run;

/// Bytes of a (0 to 3) and b (4 to 7), as the digits of `which` say from the lowest.
__device__ inline std::uint32_t chosen(std::uint32_t a, std::uint32_t b, std::uint32_t which) {
#if defined(__CUDA_ARCH__)
  return __byte_perm(a, b, which);
#else
  const std::uint64_t both = std::uint64_t{b} << 32 | a;
  std::uint32_t word = 0;
  for (int i = 0; i < 4; ++i)
    word |= static_cast<std::uint32_t>(both >> (which >> 4 * i & 7) * 8 & 0xff) << 8 * i;
  return word;
#endif
}

struct Turned {
  std::uint32_t words[4];
};
/// Of four rows of four bytes, the columns.
__device__ inline Turned turned(std::uint32_t a, std::uint32_t b, std::uint32_t c,
                                std::uint32_t d) {
  const std::uint32_t ab = chosen(a, b, 0x5140), ab_high = chosen(a, b, 0x7362);
  const std::uint32_t cd = chosen(c, d, 0x5140), cd_high = chosen(c, d, 0x7362);
  return {{chosen(ab, cd, 0x5410), chosen(ab, cd, 0x7632), chosen(ab_high, cd_high, 0x5410),
           chosen(ab_high, cd_high, 0x7632)}};
}

/// Rows by their own scales, `width` bytes apart. Without scales, no one wants them.
struct RowBytes {
  const float* scales = nullptr;
  std::uint8_t* bytes = nullptr;
  std::int64_t width = 0;

  __device__ RowBytes from(std::int64_t row, std::int64_t column) const {
    return scales == nullptr ? *this : RowBytes{scales + row, bytes + row * width + column, width};
  }
};

/// Rounds the run of rows at `from`, of which `rows` are there, for `size` columns: a word of
/// `words` for each, tile_pitch apart. With rows, by these too. A row that is not there is the
/// first one again, which no one stores.
template <class Format, int size, bool with_rows, class T>
__device__ void round_run(Rows<const T> from, std::int64_t rows, const float (&scale)[size],
                          unsigned char* words, RowBytes by_rows) {
  Pack<T, size> packs[tile_run];
  Pack<std::uint8_t, size> bytes[tile_run];
#pragma unroll
  for (int r = 0; r < tile_run; ++r)
    packs[r] = load<size>(from.data + (r < rows ? r : 0) * from.stride);
#pragma unroll
  for (int r = 0; r < tile_run; ++r) {
    bytes[r] = rounded<Format>(packs[r], [&](int k) { return scale[k]; });
    if constexpr (with_rows)
      if (r < rows) {
        const float own = by_rows.scales[r];
        store<size>(by_rows.bytes + r * by_rows.width,
                    rounded<Format>(packs[r], [&](int) { return own; }));
      }
  }
  if constexpr (size % 4 == 0) {
    std::uint32_t of_rows[tile_run][size / 4];
    __builtin_memcpy(of_rows, bytes, sizeof bytes);
#pragma unroll
    for (int k = 0; k < size; k += 4) {
      const Turned t =
          turned(of_rows[0][k / 4], of_rows[1][k / 4], of_rows[2][k / 4], of_rows[3][k / 4]);
#pragma unroll
      for (int c = 0; c < 4; ++c)
        *reinterpret_cast<std::uint32_t*>(words + (k + c) * tile_pitch) = t.words[c];
    }
  } else {
    for (int k = 0; k < size; ++k) {
      Pack<std::uint8_t, tile_run> word;
      for (int r = 0; r < tile_run; ++r) word.items[r] = bytes[r].items[k];
      store<tile_run>(words + k * tile_pitch, word);
    }
  }
}

/// Stores a tile's columns, `together` bytes at a time.
template <int together>
__device__ void store_columns(const unsigned char* tile, std::uint8_t* bytes, std::int64_t row,
                              std::int64_t column, Extent extent) {
  constexpr int runs = tile_rows / together, part = together < tile_run ? together : tile_run;
  for (int i = threadIdx.x; i < tile_columns * runs; i += threads_per_block) {
    const int c = i / runs, r = i % runs * together;
    if (column + c >= extent.width || row + r >= extent.rows) continue;
    Pack<std::uint8_t, together> run;
    for (int k = 0; k < together; k += part) {
      const auto word = load<part>(tile + c * tile_pitch + r + k);
      for (int b = 0; b < part; ++b) run.items[k + b] = word.items[b];
    }
    store<together>(bytes + (column + c) * extent.rows + row + r, run);
  }
}

/// bytes [width, rows]: transposed. The tiles come in the opposite order of that in which their
/// largest magnitudes were found, so that the last of these are still in the cache.
template <class Format, int size, bool with_rows, class T>
void bytes_by_columns(Rows<const T> x, const float* scales, int step, std::uint8_t* bytes,
                      RowBytes by_rows, Extent extent, cudaStream_t stream) {
  const std::int64_t across = (extent.width + tile_columns - 1) / tile_columns;
  const std::int64_t blocks = (extent.rows + tile_rows - 1) / tile_rows * across;
  const bool together = extent.rows % 16 == 0 && is_aligned(bytes, 16);
  const auto body = [=] __device__(std::int64_t block, unsigned char* shared) {
    constexpr int lanes = tile_columns / size;
    block = blocks - 1 - block;
    const std::int64_t row = block / across * tile_rows, column = block % across * tile_columns;
    const int lane = threadIdx.x % lanes;
    const std::int64_t mine = column + lane * size;
    if (mine < extent.width) {
      float scale[size];
      for (int k = 0; k < size; ++k) scale[k] = scales[(mine + k) * step];
      for (int r = threadIdx.x / lanes * tile_run; r < tile_rows;
           r += threads_per_block / lanes * tile_run)
        if (const std::int64_t at = row + r; at < extent.rows)
          round_run<Format, size, with_rows>(
              Rows<const T>{x.data + at * x.stride + mine, x.stride}, extent.rows - at, scale,
              shared + lane * size * tile_pitch + r, by_rows.from(at, mine));
    }
    __syncthreads();
    if (together)
      store_columns<16>(shared, bytes, row, column, extent);
    else
      store_columns<1>(shared, bytes, row, column, extent);
    __syncthreads();
  };
  const std::int64_t beside = with_rows ? extent.rows : 0;
  launch<with_rows ? 4 : 5>(
      {with_rows ? "float8_by_rows_and_columns" : "float8_by_columns",
       blocks,
       tile_columns * tile_pitch,
       stream,
       {reads(x, extent), reads(scales, step == 0 ? 1 : extent.width),
        writes(bytes, extent.rows * extent.width), reads(by_rows.scales, beside),
        writes(by_rows.bytes, beside * extent.width)}},
      body);
}

template <class Format, class T>
void bytes_of_format(Rows<const T> x, const float* scales, int step, bool transposed,
                     std::uint8_t* bytes, Extent extent, cudaStream_t stream) {
  constexpr int size = pack_size<T>;
  const bool packed = rows_fit(size, extent.width, x);
  if (transposed)
    packed ? bytes_by_columns<Format, size, false>(x, scales, step, bytes, {}, extent, stream)
           : bytes_by_columns<Format, 1, false>(x, scales, step, bytes, {}, extent, stream);
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
void float8_both(Rows<const T> x, bool has_infinities, const BothScales& scales,
                 const BothBytes& bytes, Extent extent, cudaStream_t stream) {
  constexpr int size = pack_size<T>;
  const RowBytes rows{scales.of_rows, bytes.by_rows, extent.width};
  const auto round = [&]<class Format>(Format) {
    rows_fit(size, extent.width, x)
        ? bytes_by_columns<Format, size, true>(x, scales.of_columns, 1, bytes.by_columns, rows,
                                               extent, stream)
        : bytes_by_columns<Format, 1, true>(x, scales.of_columns, 1, bytes.by_columns, rows, extent,
                                            stream);
  };
  has_infinities ? round(E5m2{}) : round(E4m3{});
}

template <class T>
void float8_rows(Rows<const T> x, bool has_infinities, bool powers_of_two, float* scales,
                 float* inverses, std::uint8_t* bytes, Extent extent, cudaStream_t stream) {
  constexpr int size = pack_size<T>;
  const auto round = [&]<class Format>(Format) {
    constexpr int all = threads_per_block;
    if (!rows_fit(size, extent.width, x))
      round_rows<Format, 1, all>(x, powers_of_two, scales, inverses, bytes, extent, stream);
    else if (extent.width > short_row<size>)
      round_rows<Format, size, all>(x, powers_of_two, scales, inverses, bytes, extent, stream);
    else
      round_rows<Format, size, 32>(x, powers_of_two, scales, inverses, bytes, extent, stream);
  };
  has_infinities ? round(E5m2{}) : round(E4m3{});
}

#define TESSERA_INSTANTIATE(T)                                                                     \
  template void float8_bytes(Rows<const T>, const float*, int, Float8Bytes, std::uint8_t*, Extent, \
                             cudaStream_t);                                                        \
  template void float8_both(Rows<const T>, bool, const BothScales&, const BothBytes&, Extent,      \
                            cudaStream_t);                                                         \
  template void float8_rows(Rows<const T>, bool, bool, float*, float*, std::uint8_t*, Extent,      \
                            cudaStream_t);
TESSERA_FOR_TYPES(TESSERA_INSTANTIATE)

}  // namespace tessera::kernels::device
