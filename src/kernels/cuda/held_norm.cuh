// SPDX-License-Identifier: Apache-2.0
// RMSNorm of rows that a block of threads holds in registers: each thread has `held` packs of a
// row.
#pragma once

#include "cuda/async_copy.cuh"
#include "cuda/norm_launch.cuh"

namespace tessera::kernels::device {

template <int size, int held>
bool is_held(std::int64_t width) {
  return width <= threads_per_block * size * held;
}

/// The first element of this thread's pack number `p`.
template <int size>
__device__ std::int64_t column_of(int p) {
  return (p * threads_per_block + threadIdx.x) * size;
}

/// Zeros beyond the row's end.
template <int size, int held, class T>
__device__ void load_row(const T* row, std::int64_t width, Pack<T, size> (&packs)[held]) {
#pragma unroll
  for (int p = 0; p < held; ++p) {
    const std::int64_t i = column_of<size>(p);
    packs[p] = i < width ? load<size>(row + i) : Pack<T, size>{};
  }
}

/// The sum over the block. Calls alternate between two parts of `scratch`, by `turn`, so that one
/// barrier is enough.
template <class V>
__device__ V sum_over_block(V value, V* scratch, std::int64_t turn) {
  value = reduce_warp(value, Add{});
  V* const parts = scratch + turn % 2 * warps_per_block;
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
  __syncthreads();
  V sum = parts[0];
  for (int w = 1; w < warps_per_block; ++w) sum += parts[w];
  return sum;
}

template <int size, int held, class T>
void forward_held(const NormInput<T>& in, const T* weight, T* y, Compute<T>* rstd, Extent extent,
                  double eps, cudaStream_t stream) {
  using C = Compute<T>;
  const C per_width = 1 / C(extent.width);
  const auto body = [=] __device__(std::int64_t row, unsigned char* shared) {
    const std::int64_t begin = row * extent.width;
    Pack<T, size> values[held] = {}, w[held];
    C squares = 0;
#pragma unroll
    for (int p = 0; p < held; ++p) {
      const std::int64_t i = column_of<size>(p);
      if (i < extent.width) values[p] = summed<size>(in, begin + i);
    }
    load_row(weight, extent.width, w);
#pragma unroll
    for (int p = 0; p < held; ++p)
      for (int k = 0; k < size; ++k)
        squares = fma(wide(values[p].items[k]), wide(values[p].items[k]), squares);
    squares = sum_over_block(squares, reinterpret_cast<C*>(shared), 0);
    const C root = inverse_root(fma(squares, per_width, C(eps)));
    if (threadIdx.x == 0) rstd[row] = root;
#pragma unroll
    for (int p = 0; p < held; ++p) {
      const std::int64_t i = column_of<size>(p);
      if (i >= extent.width) break;
      Pack<T, size> result;
      for (int k = 0; k < size; ++k)
        result.items[k] = narrow<T>(wide(values[p].items[k]) * root * wide(w[p].items[k]));
      store<size>(y + begin + i, result);
    }
    __syncthreads();
  };
  launch_norm(in, weight, y, rstd, extent, extent.rows, sizeof(C) * 32, stream, body);
}

/// The rows that gradients of a norm are made of, as they arrive in shared memory: two of them at a
/// time, each thread's packs apart.
template <int size, int held, class T>
struct StagedRows {
  NormGradient<T> gradient;
  const T* x;
  std::int64_t width;
  Pack<T, size>* packs;  ///< in shared memory

  static constexpr int kinds = 3;  ///< of x, gradient.y and gradient.sum
  static constexpr std::size_t bytes = 2 * kinds * held * threads_per_block * 16;

  __device__ Pack<T, size>* place(std::int64_t row, int kind, int p) const {
    return packs + ((row % 2 * kinds + kind) * held + p) * threads_per_block + threadIdx.x;
  }
  __device__ void begin(std::int64_t row, std::int64_t last) const {
#pragma unroll
    for (int p = 0; p < held; ++p) {
      const std::int64_t i = column_of<size>(p);
      if (row >= last || i >= width) break;
      copy_async(place(row, 0, p), x + row * width + i);
      copy_async(place(row, 1, p), gradient.y + row * width + i);
      if (gradient.sum != nullptr) copy_async(place(row, 2, p), gradient.sum + row * width + i);
    }
    end_copies();
  }
};

/// Each thread has its columns for the whole block of rows: their weight gradients add up in row
/// order, in registers.
template <int size, int held, class T>
void backward_held(const NormGradient<T>& gradient, const T* x, const T* weight,
                   const Compute<T>* rstd, T* dx, Compute<T>* dweight, Extent extent,
                   cudaStream_t stream) {
  using C = Compute<T>;
  using Staged = StagedRows<size, held, T>;
  constexpr std::size_t scratch = sizeof(C) * 32;
  const std::int64_t rows = rows_per_block(extent.width), width = extent.width;
  const C per_width = 1 / C(width);
  const auto body = [=] __device__(std::int64_t block, unsigned char* shared) {
    const std::int64_t first = block * rows;
    const std::int64_t last = first + rows < extent.rows ? first + rows : extent.rows;
    const Staged staged{gradient, x, width, reinterpret_cast<Pack<T, size>*>(shared + scratch)};
    Pack<T, size> w[held];
    load_row(weight, width, w);
    C sums[held][size] = {};
    staged.begin(first, last);
    for (std::int64_t row = first; row < last; ++row) {
      staged.begin(row + 1, last);
      const C root = rstd[row];
      wait_for_copies();
      C dot = 0;
#pragma unroll
      for (int p = 0; p < held; ++p) {
        if (column_of<size>(p) >= width) break;
        const Pack<T, size> v = *staged.place(row, 0, p), d = *staged.place(row, 1, p);
        for (int k = 0; k < size; ++k)
          dot = fma(wide(d.items[k]) * wide(w[p].items[k]), wide(v.items[k]), dot);
      }
      dot = sum_over_block(dot, reinterpret_cast<C*>(shared), row);
      const C projection = root * root * root * dot * per_width;
#pragma unroll
      for (int p = 0; p < held; ++p) {
        const std::int64_t i = column_of<size>(p);
        if (i >= width) break;
        const Pack<T, size> v = *staged.place(row, 0, p), d = *staged.place(row, 1, p);
        Pack<T, size> result, more{};
        if (gradient.sum != nullptr) more = *staged.place(row, 2, p);
        for (int k = 0; k < size; ++k) {
          const C xk = wide(v.items[k]), dk = wide(d.items[k]);
          const C of_x = rms_norm_gradient(dk * wide(w[p].items[k]), xk, root, projection);
          result.items[k] = narrow<T>(gradient.sum == nullptr ? of_x : of_x + wide(more.items[k]));
          sums[p][k] = fma(dk, xk * root, sums[p][k]);
        }
        store<size>(dx + row * width + i, result);
      }
    }
#pragma unroll
    for (int p = 0; p < held; ++p)
      for (int k = 0; k < size; ++k)
        if (column_of<size>(p) < width)
          dweight[block * width + column_of<size>(p) + k] = sums[p][k];
    __syncthreads();
  };
  launch_norm_backward<4>(gradient, x, weight, rstd, dx, dweight, extent, scratch + Staged::bytes,
                          stream, body);
}

}  // namespace tessera::kernels::device
