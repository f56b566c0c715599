// SPDX-License-Identifier: Apache-2.0
// One thin launcher for all device kernels, and how their threads read and write packs of 16 bytes.
#pragma once

#define TESSERA_ISA_NAMESPACE device
#include "cuda/launch_kernel.cuh"
#include "cuda/launchers.hpp"
#include "elements.hpp"
#include "stored.hpp"

namespace tessera::kernels::device {

/// Runs body(block, shared memory) in all threads of each block. The operands are all the device
/// memory that the body touches. Threads get as many registers as leave space for `least_blocks`
/// blocks on a multiprocessor.
template <int least_blocks = 1, class Body>
void launch(const Launch& launch, const Body& body) {
  if (launch.blocks == 0) return;
  launch_kernel<least_blocks>(launch, body);
  check_launch(launch.name);
}

/// `size` neighbours that move together.
template <class T, int size>
struct alignas(sizeof(T) * size) Pack {
  T items[size];
};

/// One access of `size` elements where `aligned`, else one for each element.
template <int size, bool aligned = true, class T>
__device__ Pack<T, size> load(const T* p) {
  if constexpr (aligned) {
    return *reinterpret_cast<const Pack<T, size>*>(p);
  } else {
    Pack<T, size> pack;
    for (int k = 0; k < size; ++k) pack.items[k] = p[k];
    return pack;
  }
}
template <int size, bool aligned = true, class T>
__device__ void store(T* p, const Pack<T, size>& pack) {
  if constexpr (aligned) {
    *reinterpret_cast<Pack<T, size>*>(p) = pack;
  } else {
    for (int k = 0; k < size; ++k) p[k] = pack.items[k];
  }
}

/// Elements of T in 16 bytes.
template <class T>
inline constexpr int pack_size = 16 / static_cast<int>(sizeof(T));

template <class T>
bool is_aligned(const T* p, int size) {
  return reinterpret_cast<std::uintptr_t>(p) % (size * sizeof(T)) == 0;
}

template <class T>
Rows<T> rows(T* data, std::int64_t stride) {
  return {data, stride};
}

/// Whether all of these rows can be read `size` elements at a time.
template <class... T>
bool rows_fit(int size, std::int64_t width, Rows<T>... rows) {
  return width % size == 0 && ((rows.stride % size == 0 && is_aligned(rows.data, size)) && ...);
}

/// `combine` over the values of neighbouring lanes, a power of two of them; every lane gets the
/// result. Code without branches, so that several of them overlap.
template <class V, class Combine>
__device__ V reduce_warp(V value, const Combine& combine, int lanes = 32) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    const V other = __shfl_xor_sync(0xffffffffu, value, offset);
    if (offset < lanes) value = combine(value, other);
  }
  return value;
}

/// `combine` over the block's values; every thread gets the result. `scratch` holds one value per
/// warp.
template <class V, class Combine>
__device__ V reduce_block(V value, V* scratch, const Combine& combine) {
  value = reduce_warp(value, combine);
  const int warp = threadIdx.x / 32;
  __syncthreads();
  if (threadIdx.x % 32 == 0) scratch[warp] = value;
  __syncthreads();
  V result = scratch[0];
  for (int w = 1; w < warps_per_block; ++w) result = combine(result, scratch[w]);
  return result;
}

/// The magnitude's bits order as magnitudes do, and those of a NaN are above all others.
template <class T>
__device__ MagnitudeBits<T> magnitude(T value) {
  using Bits = MagnitudeBits<T>;
  const Compute<T> v = wide(value);
  return bits_as<Bits>(v) & static_cast<Bits>(~Bits{0} >> 1);
}

struct Add {
  template <class V>
  __device__ V operator()(V a, V b) const {
    return a + b;
  }
};
/// The larger one; NaN wins.
struct Max {
  template <class V>
  __device__ V operator()(V a, V b) const {
    return a != a ? a : (b > a || b != b ? b : a);
  }
};

}  // namespace tessera::kernels::device

/// Makes the three kinds of a launcher.
#define TESSERA_FOR_TYPES(instantiate) \
  instantiate(double) instantiate(float) instantiate(tessera::kernels::Bf16)
