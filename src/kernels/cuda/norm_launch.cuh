// SPDX-License-Identifier: Apache-2.0
// What the kernels of RMSNorm share: how they are launched, and sums with a residual.
#pragma once

#include "cuda/launch.cuh"

namespace tessera::kernels::device {

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

template <int least_blocks = 1, class T, class Body>
void launch_norm(const NormInput<T>& in, const T* weight, T* y, Compute<T>* rstd, Extent extent,
                 std::int64_t blocks, std::size_t shared_bytes, cudaStream_t stream,
                 const Body& body) {
  const std::int64_t count = extent.rows * extent.width;
  launch<least_blocks>({"rms_norm",
                        blocks,
                        shared_bytes,
                        stream,
                        {reads(in.x, count), reads(in.residual, count), writes(in.sum, count),
                         reads(weight, extent.width), writes(y, count), writes(rstd, extent.rows)}},
                       body);
}

/// One block for each row of dweight, the sums of rows_per_block(width) rows.
template <int least_blocks = 1, class T, class Body>
void launch_norm_backward(const NormGradient<T>& gradient, const T* x, const T* weight,
                          const Compute<T>* rstd, T* dx, Compute<T>* dweight, Extent extent,
                          std::size_t shared_bytes, cudaStream_t stream, const Body& body) {
  const std::int64_t rows = rows_per_block(extent.width), count = extent.rows * extent.width;
  const std::int64_t blocks = (extent.rows + rows - 1) / rows;
  launch<least_blocks>({"rms_norm_backward",
                        blocks,
                        shared_bytes,
                        stream,
                        {reads(gradient.y, count), reads(gradient.sum, count), reads(x, count),
                         reads(weight, extent.width), reads(rstd, extent.rows), writes(dx, count),
                         writes(dweight, blocks * extent.width)}},
                       body);
}

}  // namespace tessera::kernels::device
