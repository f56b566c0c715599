// SPDX-License-Identifier: Apache-2.0
#define TESSERA_REDUCTION reduce_generic
#include "reduction_kernels.inc"
