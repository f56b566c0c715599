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

/// The pack at `column` of a row; zeros where there is none.
template <int size, class T>
__device__ Pack<T, size> load_at(const T* data, std::int64_t row, std::int64_t column,
                                 Extent extent) {
  const bool there = data != nullptr && row < extent.rows && column < extent.width;
  return there ? load<size>(data + row * extent.width + column) : Pack<T, size>{};
}

template <int size, class T>
void forward_narrow(const NormInput<T>& in, const T* weight, T* y, Compute<T>* rstd, Extent extent,
                    double eps, cudaStream_t stream) {
  using C = Compute<T>;
  const int lanes = lanes_of<size>(extent.width);
  const std::int64_t groups = threads_per_block / lanes;
  const C per_width = 1 / C(extent.width);
  const auto body = [=] __device__(std::int64_t block, unsigned char*) {
    const int lane = threadIdx.x % lanes;
    const std::int64_t row = block * groups + threadIdx.x / lanes, column = lane * size;
    const bool there = row < extent.rows && column < extent.width;
    Pack<T, size> v{};
    if (there) v = summed<size>(in, row * extent.width + column);
    C squares = 0;
    for (int k = 0; k < size; ++k) squares = fma(wide(v.items[k]), wide(v.items[k]), squares);
    squares = reduce_warp(squares, Add{}, lanes);
    const C root = inverse_root(fma(squares, per_width, C(eps)));
    if (!there) return;
    if (lane == 0) rstd[row] = root;
    const auto w = load<size>(weight + column);
    Pack<T, size> result;
    for (int k = 0; k < size; ++k)
      result.items[k] = narrow<T>(wide(v.items[k]) * root * wide(w.items[k]));
    store<size>(y + row * extent.width + column, result);
  };
  launch_norm<5>(in, weight, y, rstd, extent, (extent.rows + groups - 1) / groups, 0, stream, body);
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
    for (std::int64_t first = block * rows; first < last; first += groups) {
      const std::int64_t row = first + threadIdx.x / lanes;
      const bool there = row < last && column < extent.width;
      const auto v = load_at<size>(x, row, column, mine),
                 d = load_at<size>(gradient.y, row, column, mine);
      const auto more = load_at<size>(gradient.sum, row, column, mine);
      const C root = there ? rstd[row] : C(0);
      C dot = 0;
      for (int k = 0; k < size; ++k)
        dot = fma(wide(d.items[k]) * wide(w.items[k]), wide(v.items[k]), dot);
      dot = reduce_warp(dot, Add{}, lanes);
      if (!there) continue;
      const C projection = root * root * root * dot * per_width;
      Pack<T, size> result;
      for (int k = 0; k < size; ++k) {
        const C xk = wide(v.items[k]), dk = wide(d.items[k]);
        const C of_x = rms_norm_gradient(dk * wide(w.items[k]), xk, root, projection);
        result.items[k] = narrow<T>(gradient.sum == nullptr ? of_x : of_x + wide(more.items[k]));
        of_weight[k] = fma(dk, xk * root, of_weight[k]);
      }
      store<size>(dx + row * extent.width + column, result);
    }
    add_groups(of_weight, reinterpret_cast<C*>(shared), lanes, extent.width,
               dweight + block * extent.width);
  };
  launch_norm_backward<4>(gradient, x, weight, rstd, dx, dweight, extent,
                          sizeof(C) * threads_per_block * size, stream, body);
}

}  // namespace tessera::kernels::device
