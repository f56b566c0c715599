// SPDX-License-Identifier: Apache-2.0
// RMSNorm of narrow rows, as the norms of queries and keys have them: lanes of a warp share a row,
// and a block takes many.
#pragma once

#include "cuda/norm_launch.cuh"

namespace tessera::kernels::device {

/// Lanes that share a row: a power of two, so that one warp has all lanes of a row.
template <int size>
int lanes_of(std::int64_t width) {
  int lanes = 1;
  while (lanes < 32 && lanes * size < width) lanes *= 2;
  return lanes;
}

template <int size>
bool is_narrow(std::int64_t width) {
  return width <= 32 * size;
}

/// A pack of each of `count` rows, `apart` rows from the first; zeros where there is none.
template <int size, int count, class T>
__device__ void load_rows(const T* data, std::int64_t row, std::int64_t apart, Extent extent,
                          std::int64_t column, Pack<T, size> (&packs)[count]) {
#pragma unroll
  for (int r = 0; r < count; ++r) {
    const bool there = data != nullptr && row + r * apart < extent.rows && column < extent.width;
    packs[r] =
        there ? load<size>(data + (row + r * apart) * extent.width + column) : Pack<T, size>{};
  }
}

/// Rows that a lane holds at a time.
constexpr int forward_rows = 4, backward_rows = 2;

template <int size, class T>
void forward_narrow(const NormInput<T>& in, const T* weight, T* y, Compute<T>* rstd, Extent extent,
                    double eps, cudaStream_t stream) {
  using C = Compute<T>;
  const int lanes = lanes_of<size>(extent.width), groups = threads_per_block / lanes;
  const std::int64_t rows = groups * forward_rows;
  const C per_width = 1 / C(extent.width);
  const auto body = [=] __device__(std::int64_t block, unsigned char*) {
    const int lane = threadIdx.x % lanes;
    const std::int64_t first = block * rows + threadIdx.x / lanes, column = lane * size;
    Pack<T, size> values[forward_rows], more[forward_rows];
    load_rows(in.x, first, groups, extent, column, values);
    load_rows(in.residual, first, groups, extent, column, more);
    Pack<T, size> w{};
    if (column < extent.width) w = load<size>(weight + column);
#pragma unroll
    for (int r = 0; r < forward_rows; ++r) {
      const std::int64_t row = first + r * groups;
      const bool there = row < extent.rows && column < extent.width;
      if (in.residual != nullptr) {
        for (int k = 0; k < size; ++k)
          values[r].items[k] = narrow<T>(wide(values[r].items[k]) + wide(more[r].items[k]));
        if (there) store<size>(in.sum + row * extent.width + column, values[r]);
      }
      C squares = 0;
      for (int k = 0; k < size; ++k)
        squares = fma(wide(values[r].items[k]), wide(values[r].items[k]), squares);
      squares = reduce_warp(squares, Add{}, lanes);
      const C root = inverse_root(fma(squares, per_width, C(eps)));
      if (!there) continue;
      if (lane == 0) rstd[row] = root;
      Pack<T, size> result;
      for (int k = 0; k < size; ++k)
        result.items[k] = narrow<T>(wide(values[r].items[k]) * root * wide(w.items[k]));
      store<size>(y + row * extent.width + column, result);
    }
  };
  launch_norm(in, weight, y, rstd, extent, (extent.rows + rows - 1) / rows, 0, stream, body);
}

/// Writes the sum of what the groups of lanes of a block have, in their order.
template <int size, class C>
__device__ void add_groups(const C (&of_lane)[size], C* shared, int lanes, std::int64_t width,
                           C* sums) {
  const int columns = lanes * size, groups = threads_per_block / lanes;
  for (int k = 0; k < size; ++k) shared[threadIdx.x * size + k] = of_lane[k];
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
  const C per_width = 1 / C(extent.width);
  const auto body = [=] __device__(std::int64_t block, unsigned char* shared) {
    const std::int64_t column = threadIdx.x % lanes * size;
    const std::int64_t last = block * rows + rows < extent.rows ? block * rows + rows : extent.rows;
    const Extent mine{last, extent.width};
    Pack<T, size> w{};
    if (column < extent.width) w = load<size>(weight + column);
    C of_weight[size] = {};
    for (std::int64_t first = block * rows; first < last; first += groups * backward_rows) {
      const std::int64_t own = first + threadIdx.x / lanes;
      Pack<T, size> v[backward_rows], d[backward_rows], more[backward_rows];
      load_rows(x, own, groups, mine, column, v);
      load_rows(gradient.y, own, groups, mine, column, d);
      load_rows(gradient.sum, own, groups, mine, column, more);
#pragma unroll
      for (int r = 0; r < backward_rows; ++r) {
        const std::int64_t row = own + r * groups;
        C dot = 0;
        for (int k = 0; k < size; ++k)
          dot = fma(wide(d[r].items[k]) * wide(w.items[k]), wide(v[r].items[k]), dot);
        dot = reduce_warp(dot, Add{}, lanes);
        if (row >= last || column >= extent.width) continue;
        const C root = rstd[row], projection = root * root * root * dot * per_width;
        Pack<T, size> result;
        for (int k = 0; k < size; ++k) {
          const C xk = wide(v[r].items[k]), dk = wide(d[r].items[k]);
          const C of_x = rms_norm_gradient(dk * wide(w.items[k]), xk, root, projection);
          result.items[k] =
              narrow<T>(gradient.sum == nullptr ? of_x : of_x + wide(more[r].items[k]));
          of_weight[k] = fma(dk, xk * root, of_weight[k]);
        }
        store<size>(dx + row * extent.width + column, result);
      }
    }
    add_groups(of_weight, reinterpret_cast<C*>(shared), lanes, extent.width,
               dweight + block * extent.width);
  };
  launch_norm_backward(gradient, x, weight, rstd, dx, dweight, extent,
                       sizeof(C) * threads_per_block * size, stream, body);
}

}  // namespace tessera::kernels::device
