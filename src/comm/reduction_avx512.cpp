// SPDX-License-Identifier: Apache-2.0
#define TESSERA_REDUCTION reduce_avx512
#include "reduction_kernels.inc"
