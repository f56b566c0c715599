// SPDX-License-Identifier: Apache-2.0
// The host kernels compiled for sse; the flags are in CMakeLists.txt.
#define TESSERA_ISA_NAMESPACE sse
#include "host/vector_table.inl"
