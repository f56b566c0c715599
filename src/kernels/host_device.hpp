// Functions that both compilers take.
#pragma once

#ifdef __CUDACC__
#define TESSERA_HD __host__ __device__ __forceinline__
#else
#define TESSERA_HD inline __attribute__((always_inline))
#endif
