// SPDX-License-Identifier: Apache-2.0
#include "tessera/metrics/memory.hpp"
#include "tessera/train/device.hpp"

namespace tessera::train {

std::int64_t peak_bytes(at::Device device) {
  return device.is_cpu() ? metrics::process_memory().peak_resident_bytes
                         : device_memory(device).peak_allocated;
}

}  // namespace tessera::train
