// SPDX-License-Identifier: Apache-2.0
#include "pinned_memory.hpp"

#include <c10/core/Event.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

#include "sim/sim.hpp"

namespace tessera::sim {
namespace {

using c10::cuda::CUDAStream;
using Block = at::HostBlock<CUDAStream>;

struct PinnedBlocks final : at::CachingHostAllocatorImpl<CUDAStream, c10::Event> {
 private:
  void allocate_host_memory(std::size_t bytes, void** memory) override {
    C10_CUDA_CHECK(cudaMallocHost(memory, bytes));
  }
  void free_block(Block* block) override { C10_CUDA_CHECK(cudaFreeHost(block->ptr_)); }
  void record_stream(std::optional<std::vector<c10::Event>>& events, CUDAStream stream) override {
    events->emplace_back(at::kCUDA);
    events->back().record(stream.unwrap());
  }
  bool query_event(c10::Event& event) override { return event.query(); }
  CUDAStream get_current_stream() const override { return c10::cuda::getCurrentCUDAStream(); }
  bool stream_is_capturing(CUDAStream stream) const override {
    return is_capturing(stream.stream());
  }
};

void free_pinned(void* context);
struct PinnedMemory final : at::CachingHostAllocatorInterface<PinnedBlocks, free_pinned> {};

/// Never destroyed: tensors of other static objects may outlive it.
PinnedMemory& instance() {
  static PinnedMemory& memory = *new PinnedMemory;
  return memory;
}
void free_pinned(void* context) { instance().free(context); }

[[maybe_unused]] const bool registered = (at::setHostAllocator(at::kCUDA, &instance()), true);

}  // namespace

at::HostAllocator& pinned_memory() { return instance(); }

}  // namespace tessera::sim
