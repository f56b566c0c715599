#include "tessera/train/device.hpp"

#include "tessera/metrics/memory.hpp"
#include "tessera/train/device_copies.hpp"

namespace tessera::train {

torch::Device choose_device(const comm::World&) { return torch::kCPU; }
torch::Device default_device() { return torch::kCPU; }
std::string device_name(torch::Device) { return {}; }
std::int64_t peak_device_bytes(torch::Device) { return 0; }
std::int64_t free_bytes(torch::Device, int local_ranks) { return metrics::available_host_bytes() / local_ranks; }
void synchronize(torch::Device) {}
std::unique_ptr<DeviceCopies> make_device_copies(torch::Device) { return nullptr; }

}  // namespace tessera::train
