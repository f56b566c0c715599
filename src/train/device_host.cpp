// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/device.hpp"

#include "failed_allocation.hpp"
#include "step_graph.hpp"
#include "tessera/comm/device.hpp"
#include "tessera/metrics/memory.hpp"
#include "tessera/train/device_copies.hpp"

namespace tessera::train {

at::Device take_device(int index) {
  comm::use_device(index);  // which says that this build has no GPU support
  return at::kCPU;
}
at::Device default_device() { return at::kCPU; }
std::string device_name(at::Device) { return {}; }
bool multiplies_float8(at::Device) { return false; }
bool multiplies_groups(at::Device) { return false; }
DeviceMemory device_memory(at::Device) { return {}; }
std::int64_t free_bytes(at::Device, int ranks) { return metrics::available_host_bytes() / ranks; }
void synchronize(at::Device) {}
void follow_device_memory() {}
std::optional<FailedAllocation> failed_allocation() { return std::nullopt; }
std::optional<FailedAllocation> held_allocation(std::chrono::seconds) { return std::nullopt; }
std::unique_ptr<DeviceCopies> make_device_copies(at::Device) { return nullptr; }
std::unique_ptr<StepGraph> make_step_graph(at::Device) { return nullptr; }

}  // namespace tessera::train
