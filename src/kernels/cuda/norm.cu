// SPDX-License-Identifier: Apache-2.0
// RMSNorm on the device: one block of threads for each row, or block of rows.
#include "cuda/held_norm.cuh"
#include "cuda/narrow_norm.cuh"

namespace tessera::kernels::device {
namespace {

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
  launch_norm(in, weight, y, rstd, extent, extent.rows, sizeof(C) * 32, stream, body);
}

/// Each thread owns its columns for the whole block of rows, so their weight gradients add up in
/// row order; in shared memory where a row of them fits.
template <int size, class T>
void backward(const NormGradient<T>& gradient, const T* x, const T* weight, const Compute<T>* rstd,
              T* dx, Compute<T>* dweight, Extent extent, cudaStream_t stream) {
  using C = Compute<T>;
  const std::int64_t rows = rows_per_block(extent.width);
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
  launch_norm_backward(gradient, x, weight, rstd, dx, dweight, extent,
                       scratch_bytes + (in_shared ? sums_bytes : 0), stream, body);
}

}  // namespace

template <class T>
void rms_norm(const NormInput<T>& in, const T* weight, T* y, Compute<T>* rstd, Extent extent,
              double eps, cudaStream_t stream) {
  constexpr int size = pack_size<T>;
  const std::int64_t width = extent.width;
  if (!rows_fit(size, width, rows(in.x, width), rows(in.residual, width), rows(weight, width)) ||
      !rows_fit(size, width, rows(in.sum, width), rows(y, width)))
    forward<1>(in, weight, y, rstd, extent, eps, stream);
  else if (is_narrow<size>(width))
    forward_narrow<size>(in, weight, y, rstd, extent, eps, stream);
  else if (is_held<size, 2>(width))
    forward_held<size, 2>(in, weight, y, rstd, extent, eps, stream);
  else if (is_held<size, 4>(width))
    forward_held<size, 4>(in, weight, y, rstd, extent, eps, stream);
  else
    forward<size>(in, weight, y, rstd, extent, eps, stream);
}

template <class T>
void rms_norm_backward(const NormGradient<T>& gradient, const T* x, const T* weight,
                       const Compute<T>* rstd, T* dx, Compute<T>* dweight, Extent extent,
                       cudaStream_t stream) {
  constexpr int size = pack_size<T>;
  const std::int64_t width = extent.width;
  if (!rows_fit(size, width, rows(gradient.y, width), rows(gradient.sum, width), rows(x, width),
                rows(weight, width), rows(dx, width)))
    backward<1>(gradient, x, weight, rstd, dx, dweight, extent, stream);
  else if (is_narrow<size>(width))
    backward_narrow<size>(gradient, x, weight, rstd, dx, dweight, extent, stream);
  else if (is_held<size, 2>(width))
    backward_held<size, 2>(gradient, x, weight, rstd, dx, dweight, extent, stream);
  else if (is_held<size, 4>(width))
    backward_held<size, 4>(gradient, x, weight, rstd, dx, dweight, extent, stream);
  else
    backward<size>(gradient, x, weight, rstd, dx, dweight, extent, stream);
}

#define TESSERA_INSTANTIATE(T)                                                                   \
  template void rms_norm(const NormInput<T>&, const T*, T*, Compute<T>*, Extent, double,         \
                         cudaStream_t);                                                          \
  template void rms_norm_backward(const NormGradient<T>&, const T*, const T*, const Compute<T>*, \
                                  T*, Compute<T>*, Extent, cudaStream_t);
TESSERA_FOR_TYPES(TESSERA_INSTANTIATE)

}  // namespace tessera::kernels::device
