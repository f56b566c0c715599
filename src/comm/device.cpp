// SPDX-License-Identifier: Apache-2.0
#include "tessera/comm/device.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "compute_stream.hpp"
#include "device_memory.hpp"
#include "nccl_versions.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/gpu_failure.hpp"

namespace tessera::comm {
namespace {

std::function<void*()>& provider() {
  static std::function<void*()> instance;
  return instance;
}

}  // namespace

void check_cuda(cudaError_t code, const char* call) {
  require(
      !is_gpu_failure(code), ExitCode::environment, "{}",
      gpu_failure(fmt::format("{} ({})", cudaGetErrorString(code), cudaGetErrorName(code)), call));
  require(code == cudaSuccess, ExitCode::environment,
          "{} failed: {} ({}); look at `nvidia-smi` on this node", call, cudaGetErrorString(code),
          cudaGetErrorName(code));
}

void set_compute_stream_provider(std::function<void*()> stream) { provider() = std::move(stream); }

cudaStream_t compute_stream() {
  return provider() ? static_cast<cudaStream_t>(provider()()) : nullptr;
}

namespace {

/// As nvidia-smi writes it, without the prefix "GPU-".
std::string text_of(const cudaUUID_t& uuid) {
  std::string text;
  for (const char byte : uuid.bytes)
    text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

void describe_own(DeviceFacts& facts) {
  cudaDeviceProp properties{};
  if (const cudaError_t code = cudaGetDeviceProperties(&properties, facts.index);
      code != cudaSuccess) {
    facts.trouble = fmt::format("{} (cudaGetDeviceProperties of GPU {})", cudaGetErrorString(code),
                                facts.index);
    return;
  }
  facts.name = properties.name;
  facts.pci = fmt::format("{:04x}:{:02x}:{:02x}.0", properties.pciDomainID, properties.pciBusID,
                          properties.pciDeviceID);
  facts.uuid = text_of(properties.uuid);
}

/// NCCL takes any number but 0, also from its files, which are not read here.
bool may_share_gpus() {
  if (const char* value = std::getenv("NCCL_MULTI_RANK_GPU_ENABLE"))
    return std::strtol(value, nullptr, 0) != 0;
  const char* home = std::getenv("HOME");
  std::error_code ignored;
  return std::getenv("NCCL_CONF_FILE") || std::filesystem::exists("/etc/nccl.conf", ignored) ||
         (home && std::filesystem::exists(std::filesystem::path(home) / ".nccl.conf", ignored));
}

}  // namespace

DeviceFacts device_facts(int local_rank, bool share) {
  DeviceFacts facts;
  facts.build = true;
  const NcclVersions nccl = nccl_versions();
  facts.nccl_built = nccl.built;
  facts.nccl_loaded = nccl.loaded;
  facts.nccl_libraries = nccl.libraries;
  facts.nccl_shares_gpus = may_share_gpus();
  cudaDriverGetVersion(&facts.driver);
  const cudaError_t code = cudaGetDeviceCount(&facts.visible);
  if (code != cudaSuccess) {
    facts.visible = 0;
    facts.trouble = cudaGetErrorString(code);
    static_cast<void>(cudaGetLastError());  // which would be found by the next call
  } else if (facts.visible == 0) {
    facts.trouble = "no GPU can be seen";
  } else if (facts.visible == 1 || share || local_rank < facts.visible) {
    facts.index = local_rank % facts.visible;
    describe_own(facts);
  } else {
    facts.trouble = fmt::format("it is number {} of its node, where {} GPUs can be seen",
                                local_rank, facts.visible);
  }
  return facts;
}

void use_device(int index) { check_cuda(cudaSetDevice(index), "cudaSetDevice"); }

void copy_on_device(const void* from, void* to, std::size_t bytes) {
  if (from == to || bytes == 0) return;
  check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, compute_stream()),
             "cudaMemcpyAsync");
}

}  // namespace tessera::comm
