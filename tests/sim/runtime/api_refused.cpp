// SPDX-License-Identifier: Apache-2.0
// What LibTorch's libc10_cuda.so names and never calls as Tessera uses it: memory pools, memory of
// other processes, graphs.
#include "calls.hpp"

using tessera::cudart::refuse;

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t*, int) {
  return refuse("cudaDeviceGetDefaultMemPool");
}
cudaError_t cudaMallocAsync(void**, std::size_t, cudaStream_t) { return refuse("cudaMallocAsync"); }
cudaError_t cudaFreeAsync(void*, cudaStream_t) { return refuse("cudaFreeAsync"); }
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) {
  return refuse("cudaMemPoolGetAttribute");
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) {
  return refuse("cudaMemPoolSetAttribute");
}
cudaError_t cudaMemPoolSetAccess(cudaMemPool_t, const cudaMemAccessDesc*, std::size_t) {
  return refuse("cudaMemPoolSetAccess");
}
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, std::size_t) { return refuse("cudaMemPoolTrimTo"); }

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t*, void*) {
  return refuse("cudaIpcGetMemHandle");
}
cudaError_t cudaIpcOpenMemHandle(void**, cudaIpcMemHandle_t, unsigned) {
  return refuse("cudaIpcOpenMemHandle");
}
cudaError_t cudaIpcCloseMemHandle(void*) { return refuse("cudaIpcCloseMemHandle"); }

cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t, cudaGraphNode_t*, cudaGraphEdgeData*,
                                         std::size_t*) {
  return refuse("cudaGraphNodeGetDependencies");
}
cudaError_t cudaGetDriverEntryPointByVersion(const char*, void**, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult* result) {
  if (result != nullptr) *result = cudaDriverEntryPointSymbolNotFound;
  return refuse("cudaGetDriverEntryPointByVersion");
}
