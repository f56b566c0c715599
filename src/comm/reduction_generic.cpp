#define TESSERA_REDUCTION reduce_generic
#include "reduction_kernels.inc"
