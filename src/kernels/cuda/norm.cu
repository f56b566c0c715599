// SPDX-License-Identifier: Apache-2.0
// RMSNorm on the device: one block of threads for each row, or block of rows. Of narrow rows, as
// the norms of queries and keys have them, lanes of a warp share one, and a block takes many.
#include "cuda/launch.cuh"

namespace tessera::kernels::device {
namespace {

/// The sums at `begin`, which are stored, or what is there.
template <int size, class T>
__device__ Pack<T, size> summed(const NormInput<T>& in, std::int64_t begin) {
  auto v = load<size>(in.x + begin);
  if (in.residual == nullptr) return v;
  const auto more = load<size>(in.residual + begin);
  for (int k = 0; k < size; ++k) v.items[k] = narrow<T>(wide(v.items[k]) + wide(more.items[k]));
  store<size>(in.sum + begin, v);
  return v;
}

/// Each thread reads again what it has stored itself.
template <int size, class T>
void forward(const NormInput<T>& in, const T* weight, T* y, Compute<T>* rstd, Extent extent,
             double eps, cudaStream_t stream) {
  using C = Compute<T>;
  const auto body = [=] __device__(std::int64_t row, unsigned char* shared) {
    const T* const normed = (in.residual == nullptr ? in.x : in.sum) + row * extent.width;
    C squares = 0;
    for (std::int64_t i = threadIdx.x * size; i < extent.width; i += blockDim.x * size) {
      const auto v = summed<size>(in, row * extent.width + i);
      for (int k = 0; k < size; ++k) squares = fma(wide(v.items[k]), wide(v.items[k]), squares);
    }
    squares = reduce_block(squares, reinterpret_cast<C*>(shared), Add{});
    const C r = 1 / square_root(squares / C(extent.width) + C(eps));
    if (threadIdx.x == 0) rstd[row] = r;
    for (std::int64_t i = threadIdx.x * size; i < extent.width; i += blockDim.x * size) {
      const auto v = load<size>(normed + i), w = load<size>(weight + i);
      Pack<T, size> result;
      for (int k = 0; k < size; ++k)
        result.items[k] = narrow<T>(wide(v.items[k]) * r * wide(w.items[k]));
      store<size>(y + row * extent.width + i, result);
    }
  };
  const std::int64_t count = extent.rows * extent.width;
  launch({"rms_norm",
          extent.rows,
          sizeof(C) * 32,
          stream,
          {reads(in.x, count), reads(in.residual, count), writes(in.sum, count),
           reads(weight, extent.width), writes(y, count), writes(rstd, extent.rows)}},
         body);
}

/// Each thread owns its columns for the whole block of rows, so their weight gradients add up in
/// row order; in shared memory where a row of them fits.
template <int size, class T>
void backward(const NormGradient<T>& gradient, const T* x, const T* weight, const Compute<T>* rstd,
              T* dx, Compute<T>* dweight, Extent extent, cudaStream_t stream) {
  using C = Compute<T>;
  const std::int64_t rows = rows_per_block(extent.width);
  const std::int64_t blocks = (extent.rows + rows - 1) / rows;
  const std::size_t scratch_bytes = sizeof(C) * 32,
                    sums_bytes = sizeof(C) * static_cast<std::size_t>(extent.width);
  const bool in_shared = scratch_bytes + sums_bytes <= 96 * 1024;
  const auto body = [=] __device__(std::int64_t block, unsigned char* shared) {
    C* const total = dweight + block * extent.width;
    C* const sums = in_shared ? reinterpret_cast<C*>(shared) + 32 : total;
    const std::int64_t first = block * rows;
    const std::int64_t last = first + rows < extent.rows ? first + rows : extent.rows;
    for (std::int64_t row = first; row < last; ++row) {
      const T* const in = x + row * extent.width;
      const T* const g = gradient.y + row * extent.width;
      const T* const more = gradient.sum == nullptr ? nullptr : gradient.sum + row * extent.width;
      const C r = rstd[row];
      C dot = 0;
      for (std::int64_t i = threadIdx.x * size; i < extent.width; i += blockDim.x * size) {
        const auto v = load<size>(in + i), w = load<size>(weight + i), d = load<size>(g + i);
        for (int k = 0; k < size; ++k)
          dot = fma(wide(d.items[k]) * wide(w.items[k]), wide(v.items[k]), dot);
      }
      dot = reduce_block(dot, reinterpret_cast<C*>(shared), Add{});
      const C projection = r * r * r * dot / C(extent.width);
      for (std::int64_t i = threadIdx.x * size; i < extent.width; i += blockDim.x * size) {
        const auto v = load<size>(in + i), w = load<size>(weight + i), d = load<size>(g + i);
        Pack<T, size> result, added{};
        if (more != nullptr) added = load<size>(more + i);
        for (int k = 0; k < size; ++k) {
          const C xk = wide(v.items[k]), dk = wide(d.items[k]);
          const C of_x = rms_norm_gradient(dk * wide(w.items[k]), xk, r, projection);
          result.items[k] = narrow<T>(more == nullptr ? of_x : of_x + wide(added.items[k]));
          sums[i + k] = fma(dk, xk * r, row == first ? C(0) : sums[i + k]);
        }
        store<size>(dx + row * extent.width + i, result);
      }
    }
    if (!in_shared) return;
    for (std::int64_t i = threadIdx.x * size; i < extent.width; i += blockDim.x * size)
      for (int k = 0; k < size; ++k) total[i + k] = sums[i + k];
  };
  const std::int64_t count = extent.rows * extent.width;
  launch({"rms_norm_backward",
          blocks,
          scratch_bytes + (in_shared ? sums_bytes : 0),
          stream,
          {reads(gradient.y, count), reads(gradient.sum, count), reads(x, count),
           reads(weight, extent.width), reads(rstd, extent.rows), writes(dx, count),
           writes(dweight, blocks * extent.width)}},
         body);
}

/// Lanes that share a narrow row: a power of two, so that one warp has all lanes of a row.
template <int size>
int lanes_of(std::int64_t width) {
  int lanes = 1;
  while (lanes < 32 && lanes * size < width) lanes *= 2;
  return lanes;
}

/// Packs of a narrow row that a lane holds in registers.
constexpr int narrow_packs = 2;

template <int size>
bool is_narrow(std::int64_t width) {
  return width <= 32 * size * narrow_packs;
}

template <class V>
__device__ V sum_over(V value, int lanes) {
  for (int offset = lanes / 2; offset > 0; offset /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

/// A lane's packs of a row; zeros beyond its end.
template <int size, class T>
__device__ void load_row(const T* row, std::int64_t width, int lane, int lanes,
                         Pack<T, size> (&packs)[narrow_packs]) {
  for (int p = 0; p < narrow_packs; ++p) {
    const std::int64_t i = (p * lanes + lane) * size;
    packs[p] = i < width ? load<size>(row + i) : Pack<T, size>{};
  }
}

template <int size, class T>
void forward_narrow(const NormInput<T>& in, const T* weight, T* y, Compute<T>* rstd, Extent extent,
                    double eps, cudaStream_t stream) {
  using C = Compute<T>;
  const int lanes = lanes_of<size>(extent.width), rows = threads_per_block / lanes;
  const std::int64_t count = extent.rows * extent.width;
  const auto body = [=] __device__(std::int64_t block, unsigned char*) {
    const int lane = threadIdx.x % lanes;
    const std::int64_t row = block * rows + threadIdx.x / lanes;
    const bool mine = row < extent.rows;
    const std::int64_t begin = row * extent.width;
    Pack<T, size> values[narrow_packs] = {};
    C squares = 0;
    for (int p = 0; p < narrow_packs; ++p) {
      const std::int64_t i = (p * lanes + lane) * size;
      if (mine && i < extent.width) values[p] = summed<size>(in, begin + i);
      for (int k = 0; k < size; ++k)
        squares = fma(wide(values[p].items[k]), wide(values[p].items[k]), squares);
    }
    squares = sum_over(squares, lanes);
    const C r = 1 / square_root(squares / C(extent.width) + C(eps));
    if (!mine) return;
    if (lane == 0) rstd[row] = r;
    for (int p = 0; p < narrow_packs; ++p) {
      const std::int64_t i = (p * lanes + lane) * size;
      if (i >= extent.width) break;
      const auto w = load<size>(weight + i);
      Pack<T, size> result;
      for (int k = 0; k < size; ++k)
        result.items[k] = narrow<T>(wide(values[p].items[k]) * r * wide(w.items[k]));
      store<size>(y + begin + i, result);
    }
  };
  launch({"rms_norm",
          (extent.rows + rows - 1) / rows,
          0,
          stream,
          {reads(in.x, count), reads(in.residual, count), writes(in.sum, count),
           reads(weight, extent.width), writes(y, count), writes(rstd, extent.rows)}},
         body);
}

/// Writes the sum of what the groups of lanes of a block have, in their order.
template <int size, class C>
__device__ void add_groups(const C (&of_lane)[narrow_packs][size], C* shared, int lanes,
                           std::int64_t width, C* sums) {
  const int lane = threadIdx.x % lanes, group = threadIdx.x / lanes;
  const int columns = lanes * narrow_packs * size, groups = threads_per_block / lanes;
  for (int p = 0; p < narrow_packs; ++p)
    for (int k = 0; k < size; ++k)
      shared[group * columns + (p * lanes + lane) * size + k] = of_lane[p][k];
  __syncthreads();
  for (std::int64_t i = threadIdx.x; i < width; i += blockDim.x) {
    C sum = 0;
    for (int g = 0; g < groups; ++g) sum += shared[g * columns + i];
    sums[i] = sum;
  }
  __syncthreads();
}

/// Lanes keep the weight's gradients of their columns for all rows that they take; the block adds
/// those of its groups of lanes in order.
template <int size, class T>
void backward_narrow(const NormGradient<T>& gradient, const T* x, const T* weight,
                     const Compute<T>* rstd, T* dx, Compute<T>* dweight, Extent extent,
                     cudaStream_t stream) {
  using C = Compute<T>;
  const int lanes = lanes_of<size>(extent.width), groups = threads_per_block / lanes;
  const std::int64_t rows = rows_per_block(extent.width);
  const std::int64_t blocks = (extent.rows + rows - 1) / rows;
  const std::int64_t count = extent.rows * extent.width;
  const auto body = [=] __device__(std::int64_t block, unsigned char* shared) {
    const int lane = threadIdx.x % lanes, group = threadIdx.x / lanes;
    C* const sums = reinterpret_cast<C*>(shared);
    Pack<T, size> w[narrow_packs];
    load_row<size>(weight, extent.width, lane, lanes, w);
    C of_weight[narrow_packs][size] = {};
    for (std::int64_t turn = 0; turn < rows; turn += groups) {
      const std::int64_t row = block * rows + turn + group;
      const bool mine = turn + group < rows && row < extent.rows;
      const std::int64_t begin = mine ? row * extent.width : 0;
      Pack<T, size> v[narrow_packs] = {}, d[narrow_packs] = {}, more[narrow_packs] = {};
      if (mine) {
        load_row<size>(x + begin, extent.width, lane, lanes, v);
        load_row<size>(gradient.y + begin, extent.width, lane, lanes, d);
        if (gradient.sum != nullptr)
          load_row<size>(gradient.sum + begin, extent.width, lane, lanes, more);
      }
      C dot = 0;
      for (int p = 0; p < narrow_packs; ++p)
        for (int k = 0; k < size; ++k)
          dot = fma(wide(d[p].items[k]) * wide(w[p].items[k]), wide(v[p].items[k]), dot);
      dot = sum_over(dot, lanes);
      if (!mine) continue;
      const C r = rstd[row], projection = r * r * r * dot / C(extent.width);
      for (int p = 0; p < narrow_packs; ++p) {
        Pack<T, size> result;
        for (int k = 0; k < size; ++k) {
          const C xk = wide(v[p].items[k]), dk = wide(d[p].items[k]);
          const C of_x = rms_norm_gradient(dk * wide(w[p].items[k]), xk, r, projection);
          result.items[k] =
              narrow<T>(gradient.sum == nullptr ? of_x : of_x + wide(more[p].items[k]));
          of_weight[p][k] = fma(dk, xk * r, of_weight[p][k]);
        }
        const std::int64_t i = (p * lanes + lane) * size;
        if (i < extent.width) store<size>(dx + begin + i, result);
      }
    }
    add_groups(of_weight, sums, lanes, extent.width, dweight + block * extent.width);
  };
  launch({"rms_norm_backward",
          blocks,
          sizeof(C) * threads_per_block * narrow_packs * size,
          stream,
          {reads(gradient.y, count), reads(gradient.sum, count), reads(x, count),
           reads(weight, extent.width), reads(rstd, extent.rows), writes(dx, count),
           writes(dweight, blocks * extent.width)}},
         body);
}

}  // namespace

template <class T>
void rms_norm(const NormInput<T>& in, const T* weight, T* y, Compute<T>* rstd, Extent extent,
              double eps, cudaStream_t stream) {
  constexpr int size = pack_size<T>;
  const std::int64_t width = extent.width;
  if (rows_fit(size, width, rows(in.x, width), rows(in.residual, width), rows(weight, width)) &&
      rows_fit(size, width, rows(in.sum, width), rows(y, width)))
    is_narrow<size>(width) ? forward_narrow<size>(in, weight, y, rstd, extent, eps, stream)
                           : forward<size>(in, weight, y, rstd, extent, eps, stream);
  else
    forward<1>(in, weight, y, rstd, extent, eps, stream);
}

template <class T>
void rms_norm_backward(const NormGradient<T>& gradient, const T* x, const T* weight,
                       const Compute<T>* rstd, T* dx, Compute<T>* dweight, Extent extent,
                       cudaStream_t stream) {
  constexpr int size = pack_size<T>;
  const std::int64_t width = extent.width;
  if (rows_fit(size, width, rows(gradient.y, width), rows(gradient.sum, width), rows(x, width),
               rows(weight, width), rows(dx, width)))
    is_narrow<size>(width)
        ? backward_narrow<size>(gradient, x, weight, rstd, dx, dweight, extent, stream)
        : backward<size>(gradient, x, weight, rstd, dx, dweight, extent, stream);
  else
    backward<1>(gradient, x, weight, rstd, dx, dweight, extent, stream);
}

#define TESSERA_INSTANTIATE(T)                                                                   \
  template void rms_norm(const NormInput<T>&, const T*, T*, Compute<T>*, Extent, double,         \
                         cudaStream_t);                                                          \
  template void rms_norm_backward(const NormGradient<T>&, const T*, const T*, const Compute<T>*, \
                                  T*, Compute<T>*, Extent, cudaStream_t);
TESSERA_FOR_TYPES(TESSERA_INSTANTIATE)

}  // namespace tessera::kernels::device
