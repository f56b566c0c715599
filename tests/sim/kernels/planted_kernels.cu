// SPDX-License-Identifier: Apache-2.0
#include "planted_kernels.hpp"

#include "cuda/async_copy.cuh"
#include "cuda/launch.cuh"

namespace tessera::kernels::device {

/// device_backend.cpp's, without its words.
void check_launch(const char*) {}

}  // namespace tessera::kernels::device

namespace tessera::sim::test {

using namespace kernels::device;
using kernels::Extent;
using kernels::Rows;

void add_first(const float* in, float* out, std::int64_t rows, std::int64_t width,
               std::int64_t stride, Fault fault) {
  const Extent extent{rows, width};
  const auto body = [=] __device__(std::int64_t row, unsigned char* shared) {
    auto* const first = reinterpret_cast<float*>(shared);
    const float* const x = in + row * stride;
    if (threadIdx.x == 0) first[fault == Fault::shared_overrun ? 8 : 0] = x[0];
    if (fault == Fault::barrier_of_some_threads && threadIdx.x == 7) return;
    if (fault != Fault::no_barrier_before_reading) __syncthreads();
    for (std::int64_t i = threadIdx.x; i < width; i += blockDim.x)
      out[row * stride + i] = x[i] + first[0];
    if (threadIdx.x == 10) {
      if (fault == Fault::write_behind_a_row) out[row * stride + width] = 0;
      if (fault == Fault::read_behind_a_row) out[row * stride] = x[width];
      if (fault == Fault::write_to_input) const_cast<float*>(x)[0] = 0;
    }
    __syncthreads();  // thread 0 may write the first value of another row next
  };
  launch({"add_first",
          rows,
          8 * sizeof(float),
          nullptr,
          {reads(Rows<const float>{in, stride}, extent), writes(Rows<float>{out, stride}, extent)}},
         body);
}

void sum_blocks(const double* values, double* sums, std::int64_t blocks, Fault fault) {
  launch({"sum_blocks",
          blocks,
          sizeof(double) * 32,
          nullptr,
          {reads(values, blocks * 256), writes(sums, blocks)}},
         [=] __device__(std::int64_t block, unsigned char* shared) {
           if (fault == Fault::shuffle_of_some_lanes && threadIdx.x == 3) return;
           const double sum = reduce_block(values[block * 256 + threadIdx.x],
                                           reinterpret_cast<double*>(shared), Add{});
           if (threadIdx.x == 0) sums[block] = sum;
         });
}

void copy_behind_threads(const int* in, int* out, bool waits) {
  launch({"copy_behind_threads",
          1,
          16 * threads_per_block,
          nullptr,
          {reads(in, 4 * threads_per_block), writes(out, threads_per_block)}},
         [=] __device__(std::int64_t, unsigned char* shared) {
           auto* const pack = reinterpret_cast<Pack<int, 4>*>(shared) + threadIdx.x;
           copy_async(pack, in + 4 * threadIdx.x);
           end_copies();
           end_copies();  // a group without copies is the newest one now
           if (waits) wait_for_copies();
           out[threadIdx.x] = pack->items[0];
         });
}

void count_threads(unsigned long long* count, unsigned long long* by_parity, std::int64_t blocks) {
  launch({"count_threads",
          blocks,
          2 * sizeof(unsigned long long),
          nullptr,
          {writes(count, 1), writes(by_parity, 2 * blocks)}},
         [=] __device__(std::int64_t block, unsigned char* shared) {
           auto* const parts = reinterpret_cast<unsigned long long*>(shared);
           if (threadIdx.x < 2) parts[threadIdx.x] = 0;
           __syncthreads();
           atomicAdd(parts + threadIdx.x % 2, 1ULL);
           atomicAdd(count, 1ULL);
           __syncthreads();
           if (threadIdx.x < 2) by_parity[2 * block + threadIdx.x] = parts[threadIdx.x];
         });
}

void read_new_shared_memory(int* out) {
  launch({"read_new_shared_memory", 1, 256 * sizeof(int), nullptr, {writes(out, 256)}},
         [=] __device__(std::int64_t, unsigned char* shared) {
           out[threadIdx.x] = reinterpret_cast<const int*>(shared)[threadIdx.x];
         });
}

}  // namespace tessera::sim::test
