// SPDX-License-Identifier: Apache-2.0
// The host kernels compiled for avx2; the flags are in CMakeLists.txt.
#define TESSERA_ISA_NAMESPACE avx2
#include "host/vector_table.inl"
