#include "tessera/train/device.hpp"

namespace tessera::train {

torch::Device choose_device(const comm::World&) { return torch::kCPU; }
torch::Device default_device() { return torch::kCPU; }
std::string device_name(torch::Device) { return {}; }
std::int64_t peak_device_bytes(torch::Device) { return 0; }
void synchronize(torch::Device) {}

}  // namespace tessera::train
