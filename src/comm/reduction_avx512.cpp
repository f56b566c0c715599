#define TESSERA_REDUCTION reduce_avx512
#include "reduction_kernels.inc"
