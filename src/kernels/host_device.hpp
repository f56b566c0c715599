// SPDX-License-Identifier: Apache-2.0
// Functions for host and device.
#pragma once

#if defined(__CUDACC__) || defined(__HIPCC__)
#define TESSERA_HD __host__ __device__ __forceinline__
#else
#define TESSERA_HD inline __attribute__((always_inline))
#endif
