// SPDX-License-Identifier: Apache-2.0
// Sums of squares on the device.
#include "cuda/tiles.cuh"

namespace tessera::kernels::device {

namespace {

/// Values that a thread holds at a time.
constexpr int sum_values = 16;

template <int size, class T>
void sum_of_squares(const T* values, std::int64_t count, double* sums, cudaStream_t stream) {
  const std::int64_t blocks = (count + squares_per_block - 1) / squares_per_block;
  launch({"sum_of_squares",
          blocks,
          sizeof(double) * 32,
          stream,
          {reads(values, count), writes(sums, blocks)}},
         [=] __device__(std::int64_t block, unsigned char* shared) {
           double parts[4] = {};
           for_tiles<size, sum_values>(values, count, block,
                                       [&](const T(&tile)[sum_values], auto, auto) {
                                         for (int k = 0; k < sum_values; ++k) {
                                           const double v = wide(tile[k]);
                                           parts[k % 4] = fma(v, v, parts[k % 4]);
                                         }
                                       });
           const double sum = reduce_block((parts[0] + parts[1]) + (parts[2] + parts[3]),
                                           reinterpret_cast<double*>(shared), Add{});
           if (threadIdx.x == 0) sums[block] = sum;
         });
}

}  // namespace

template <class T>
void sum_of_squares(const T* values, std::int64_t count, double* sums, cudaStream_t stream) {
  if (is_aligned(values, pack_size<T>))
    sum_of_squares<pack_size<T>>(values, count, sums, stream);
  else
    sum_of_squares<1>(values, count, sums, stream);
}

#define TESSERA_INSTANTIATE(T) \
  template void sum_of_squares(const T*, std::int64_t, double*, cudaStream_t);
TESSERA_FOR_TYPES(TESSERA_INSTANTIATE)

}  // namespace tessera::kernels::device
