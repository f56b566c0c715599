// SPDX-License-Identifier: Apache-2.0
// Sums of squares on the device.
#include "cuda/launch.cuh"
#include "fixed_point.hpp"

namespace tessera::kernels::device {

/// Threads walk a block's elements in strides and their sums fold by a fixed tree.
template <class T>
void sum_of_squares(const T* values, std::int64_t count, double* sums, cudaStream_t stream) {
  const std::int64_t blocks = (count + squares_per_block - 1) / squares_per_block;
  launch({"sum_of_squares",
          blocks,
          sizeof(double) * 32,
          stream,
          {reads(values, count), writes(sums, blocks)}},
         [=] __device__(std::int64_t block, unsigned char* shared) {
           const std::int64_t first = block * squares_per_block;
           const std::int64_t last =
               first + squares_per_block < count ? first + squares_per_block : count;
           double sum = 0;
           for (std::int64_t i = first + threadIdx.x; i < last; i += blockDim.x) {
             const double v = wide(values[i]);
             sum = fma(v, v, sum);
           }
           sum = reduce_block(sum, reinterpret_cast<double*>(shared), Add{});
           if (threadIdx.x == 0) sums[block] = sum;
         });
}

/// Integer atomics on digits in shared memory: any order gives the same words.
template <class T>
void exact_squares(const T* values, std::int64_t count, std::int64_t* words, cudaStream_t stream) {
  using Word = unsigned long long;
  const std::int64_t blocks = (count + squares_per_block - 1) / squares_per_block;
  launch({"exact_squares",
          blocks,
          sizeof(Word) * fixed_point::word_count,
          stream,
          {reads(values, count), writes(words, fixed_point::word_count)}},
         [=] __device__(std::int64_t block, unsigned char* shared) {
           auto* const digits = reinterpret_cast<Word*>(shared);
           for (int i = threadIdx.x; i < fixed_point::word_count; i += blockDim.x) digits[i] = 0;
           __syncthreads();
           const std::int64_t first = block * squares_per_block;
           const std::int64_t last =
               first + squares_per_block < count ? first + squares_per_block : count;
           for (std::int64_t i = first + threadIdx.x; i < last; i += blockDim.x) {
             const double v = wide(values[i]);
             fixed_point::add(v * v, [&](int word, std::int64_t digit) {
               atomicAdd(digits + word, static_cast<Word>(digit));
             });
           }
           __syncthreads();
           if (threadIdx.x == 0) fixed_point::carry(reinterpret_cast<std::int64_t*>(digits));
           __syncthreads();
           for (int i = threadIdx.x; i < fixed_point::word_count;
                i += blockDim.x)  // which the same threads make zero
             atomicAdd(reinterpret_cast<Word*>(words) + i, digits[i]);
         });
}

#define TESSERA_INSTANTIATE(T)                                                 \
  template void sum_of_squares(const T*, std::int64_t, double*, cudaStream_t); \
  template void exact_squares(const T*, std::int64_t, std::int64_t*, cudaStream_t);
TESSERA_FOR_TYPES(TESSERA_INSTANTIATE)

}  // namespace tessera::kernels::device
