#include "tessera/comm/device.hpp"

#include "compute_stream.hpp"
#include "device_memory.hpp"
#include "tessera/base/error.hpp"

namespace tessera::comm {
namespace {

std::function<void*()>& provider() {
  static std::function<void*()> instance;
  return instance;
}

}  // namespace

void check_cuda(cudaError_t code, const char* call) {
  require(code == cudaSuccess, ExitCode::environment, "{} failed: {} ({}); look at `nvidia-smi` on this node", call,
          cudaGetErrorString(code), cudaGetErrorName(code));
}

void set_compute_stream_provider(std::function<void*()> stream) { provider() = std::move(stream); }

cudaStream_t compute_stream() { return provider() ? static_cast<cudaStream_t>(provider()()) : nullptr; }

int choose_device(int local_rank) {
  int devices = 0;
  check_cuda(cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
  require(devices == 1 || local_rank < devices, ExitCode::environment,
          "rank {} of this node has no GPU: {} can be seen; start {} ranks per node, or check CUDA_VISIBLE_DEVICES",
          local_rank, devices, devices);
  const int device = devices == 1 ? 0 : local_rank;
  check_cuda(cudaSetDevice(device), "cudaSetDevice");
  return device;
}

void copy_on_device(const void* from, void* to, std::size_t bytes) {
  if (from == to || bytes == 0) return;
  check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, compute_stream()), "cudaMemcpyAsync");
}

}  // namespace tessera::comm
