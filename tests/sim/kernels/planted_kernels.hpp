// SPDX-License-Identifier: Apache-2.0
// Kernels with one fault each, as they are written in .cu files.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace tessera::sim::test {

enum class Fault {
  none,
  write_behind_a_row,
  read_behind_a_row,
  write_to_input,
  no_barrier_before_reading,
  barrier_of_some_threads,
  shared_overrun,
  shuffle_of_some_lanes
};

/// out[row][i] = in[row][i] + the row's first element, `width` of `stride` elements of a row;
/// through shared memory.
void add_first(const float* in, float* out, std::int64_t rows, std::int64_t width,
               std::int64_t stride, Fault fault);

/// sums[block] = the sum of 256 numbers, through shuffles and shared memory.
void sum_blocks(const double* values, double* sums, std::int64_t blocks, Fault fault);

/// Each thread of each block adds one to *count, and to one of the two numbers of `by_parity` for
/// its block.
void count_threads(unsigned long long* count, unsigned long long* by_parity, std::int64_t blocks);

/// out[i] = in[4 * i], from a copy of 4 ints into shared memory, for which the thread waits or does
/// not.
void copy_behind_threads(const int* in, int* out, bool waits);

/// out[i] = the bits of an int in shared memory that no one has written.
void read_new_shared_memory(int* out);

}  // namespace tessera::sim::test
