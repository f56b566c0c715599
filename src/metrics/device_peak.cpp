// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/metrics/flops.hpp"

namespace tessera::metrics {
namespace {

struct DeviceRow {
  std::string_view words;  ///< all of them occur in the device's name
  double bf16, f8, f32;    ///< dense TFLOP/s; 0: the device has no such unit
};

// Vendors' data sheets, dense (half of what they print "with sparsity"); tensor or matrix cores,
// f32 on the plain vector units. The first row whose words all occur in the name counts: special
// forms come before the plain one. MI250(X): one die, as HIP shows it.
constexpr std::array device_rows{
    DeviceRow{"H100 NVL", 835.5, 1671, 60},
    DeviceRow{"H100 PCIe", 756.5, 1513, 51.2},
    DeviceRow{"H100", 989.5, 1979, 66.9},
    DeviceRow{"H200 NVL", 835.5, 1671, 60},
    DeviceRow{"H200", 989.5, 1979, 66.9},
    DeviceRow{"GH200", 989.5, 1979, 66.9},
    DeviceRow{"H800 PCIe", 756.5, 1513, 51},
    DeviceRow{"H800", 989.5, 1979, 66.9},
    DeviceRow{"H20", 148, 296, 44},
    DeviceRow{"B200", 2250, 4500, 75},
    DeviceRow{"GB200", 2500, 5000, 80},
    DeviceRow{"B300", 2250, 4500, 75},
    DeviceRow{"GB300", 2500, 5000, 80},
    DeviceRow{"A100", 312, 0, 19.5},
    DeviceRow{"A800", 312, 0, 19.5},
    DeviceRow{"A30", 165, 0, 10.3},
    DeviceRow{"A40", 149.7, 0, 37.4},
    DeviceRow{"A10", 125, 0, 31.2},
    DeviceRow{"A6000", 154.8, 0, 38.7},
    DeviceRow{"L40S", 362, 733, 91.6},
    DeviceRow{"L40", 181, 362, 90.5},
    DeviceRow{"L4", 121, 242.5, 30.3},
    DeviceRow{"RTX 3090", 71, 0, 35.6},
    DeviceRow{"RTX 4090", 165.2, 330.3, 82.6},
    DeviceRow{"RTX 5090", 209.5, 419, 104.8},
    DeviceRow{"MI355X", 2516.6, 5033.2, 157.3},
    DeviceRow{"MI350X", 2306.9, 4613.7, 144.2},
    DeviceRow{"MI325X", 1307.4, 2614.9, 163.4},
    DeviceRow{"MI300X", 1307.4, 2614.9, 163.4},
    DeviceRow{"MI300A", 980.6, 1961.2, 122.6},
    DeviceRow{"MI250X", 191.5, 0, 23.9},
    DeviceRow{"MI250", 181, 0, 22.6},
};

/// Runs of letters and digits: "A10" is not a part of "A100".
std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  const auto is_word = [](unsigned char c) { return std::isalnum(c) != 0; };
  for (auto at = text.begin(); (at = std::find_if(at, text.end(), is_word)) != text.end();) {
    const auto end = std::find_if_not(at, text.end(), is_word);
    words.emplace_back(at, end);
    at = end;
  }
  return words;
}

bool all_in(const std::vector<std::string_view>& wanted,
            const std::vector<std::string_view>& name) {
  return std::ranges::all_of(
      wanted, [&](auto word) { return std::ranges::find(name, word) != name.end(); });
}

double teraflops(const DeviceRow& row, DType dtype) {
  switch (dtype) {
    case DType::bf16:
    case DType::f16:
      return row.bf16;
    case DType::f8e4m3:
    case DType::f8e5m2:
      return row.f8;
    case DType::f32:
      return row.f32;
    default:
      return 0;
  }
}

}  // namespace

std::optional<Peak> device_peak(std::string_view device_name, DType dtype) {
  const auto name = words_of(device_name);
  for (const std::string_view part : {"MIG", "Laptop"})  // less than the card of the same number
    if (std::ranges::find(name, part) != name.end()) return std::nullopt;
  const auto row = std::ranges::find_if(
      device_rows, [&](const DeviceRow& r) { return all_in(words_of(r.words), name); });
  if (row == device_rows.end() || teraflops(*row, dtype) == 0) return std::nullopt;
  return Peak{teraflops(*row, dtype) * 1e12,
              fmt::format("data sheet of {}, dense {}", row->words, name_of(dtype))};
}

}  // namespace tessera::metrics
