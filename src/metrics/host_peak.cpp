// SPDX-License-Identifier: Apache-2.0
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <set>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/base/text_file.hpp"
#include "tessera/metrics/core_speed.hpp"
#include "tessera/metrics/flops.hpp"

namespace tessera::metrics {
namespace {

struct VectorUnit {
  DType dtype;
  std::string_view flag;  ///< as /proc/cpuinfo spells it
  std::string_view name;
  /// of one core: lanes x 2 (multiply and add) x units (two on server parts)
  double flops_per_cycle;
};

// AMX multiplies tiles of 16 x 32 and 32 x 16 in 16 cycles. Widest first for each type; a type
// without a row of its own runs at float32's rate.
constexpr std::array vector_units{
    VectorUnit{DType::bf16, "amx_bf16", "AMX", 1024},
    VectorUnit{DType::bf16, "avx512_bf16", "AVX-512 BF16", 128},
    VectorUnit{DType::bf16, "svebf16", "SVE BF16", 128},
    VectorUnit{DType::bf16, "bf16", "NEON BF16", 64},
    VectorUnit{DType::f16, "amx_fp16", "AMX", 1024},
    VectorUnit{DType::f16, "avx512_fp16", "AVX-512 FP16", 128},
    VectorUnit{DType::f32, "avx512f", "AVX-512", 64},
    VectorUnit{DType::f32, "fma", "AVX2", 32},
    VectorUnit{DType::f32, "avx", "AVX", 16},
    VectorUnit{DType::f32, "sse2", "SSE2", 8},
    VectorUnit{DType::f32, "sve", "SVE", 32},
    VectorUnit{DType::f32, "asimd", "NEON", 16},
};

/// Calls visit(key, value) for each "key : value" line.
template <class Visit>
void for_each_field(std::string_view cpuinfo, Visit visit) {
  const auto trimmed = [](std::string_view s) {
    const auto first = s.find_first_not_of(" \t");
    return first == s.npos ? std::string_view{}
                           : s.substr(first, s.find_last_not_of(" \t") - first + 1);
  };
  while (!cpuinfo.empty()) {
    const std::string_view line = cpuinfo.substr(0, cpuinfo.find('\n'));
    cpuinfo.remove_prefix(std::min(cpuinfo.size(), line.size() + 1));
    if (const auto colon = line.find(':'); colon != line.npos)
      visit(trimmed(line.substr(0, colon)), trimmed(line.substr(colon + 1)));
  }
}

template <class Number>
Number number_in(std::string_view text) {
  Number value{};
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::string_view first_field(std::string_view cpuinfo, std::string_view wanted) {
  std::string_view found;
  for_each_field(cpuinfo, [&](auto key, auto value) {
    if (found.empty() && key == wanted) found = value;
  });
  return found;
}

/// Distinct (socket, core) among the processors that `counts` picks.
int count_cores(std::string_view cpuinfo, const std::function<bool(int)>& counts) {
  std::set<std::pair<int, int>> cores;
  int processor = 0;
  int socket = 0;
  for_each_field(cpuinfo, [&](auto key, auto value) {
    if (key == "processor") {
      processor = number_in<int>(value);
      if (counts(processor))
        cores.emplace(-1, processor);  // represents itself until its core is known
    }
    if (key == "physical id") socket = number_in<int>(value);
    if (key == "core id" && cores.erase({-1, processor}) > 0)
      cores.emplace(socket, number_in<int>(value));
  });
  return std::max<int>(1, static_cast<int>(cores.size()));
}

bool has_flag(std::string_view flags, std::string_view flag) {
  for (auto at = flags.find(flag); at != flags.npos; at = flags.find(flag, at + 1)) {
    const auto end = at + flag.size();
    if ((at == 0 || flags[at - 1] == ' ') && (end == flags.size() || flags[end] == ' '))
      return true;
  }
  return false;
}

double stated_clock_hz(std::string_view cpuinfo) {
  double megahertz = 0;
  for_each_field(cpuinfo, [&](auto key, auto value) {
    if (key == "cpu MHz") megahertz = std::max(megahertz, number_in<double>(value));
  });
  return megahertz * 1e6;
}

const VectorUnit* widest_unit(std::string_view flags, DType dtype) {
  for (const VectorUnit& unit : vector_units)
    if ((unit.dtype == dtype || unit.dtype == DType::f32) && has_flag(flags, unit.flag))
      return &unit;
  return nullptr;
}

/// Zen 3 and 4 (family 25) run 512-bit instructions in two halves.
double halves(std::string_view cpuinfo, const VectorUnit& unit) {
  const bool half = unit.flag.starts_with("avx512") &&
                    first_field(cpuinfo, "vendor_id") == "AuthenticAMD" &&
                    first_field(cpuinfo, "cpu family") == "25";
  return half ? 0.5 : 1;
}

std::string_view flags_in(std::string_view cpuinfo) {
  const std::string_view flags = first_field(cpuinfo, "flags");
  return flags.empty() ? first_field(cpuinfo, "Features") : flags;
}

/// Of all types: a processor that has them lowers its clock for any of them.
VectorLoad load_of(std::string_view flags) {
  if (has_flag(flags, "avx512f")) return VectorLoad::bits_512;
  return has_flag(flags, "fma") ? VectorLoad::bits_256 : VectorLoad::none;
}

bool allowed_here(int processor) {
  static const cpu_set_t mask = [] {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (::sched_getaffinity(0, sizeof set, &set) != 0)
      for (int i = 0; i < CPU_SETSIZE; ++i) CPU_SET(i, &set);
    return set;
  }();
  return processor < CPU_SETSIZE && CPU_ISSET(processor, &mask);
}

}  // namespace

int physical_cores(std::string_view cpuinfo) {
  return count_cores(cpuinfo, [](int) { return true; });
}

Peak host_peak_of(std::string_view cpuinfo, DType dtype, double cores, double clock_hz) {
  const double hz = clock_hz > 0 ? clock_hz : stated_clock_hz(cpuinfo);
  const std::string_view flags = flags_in(cpuinfo);
  const VectorUnit* unit =
      dtype == DType::f64 ? widest_unit(flags, DType::f32) : widest_unit(flags, dtype);
  const bool floating =
      dtype == DType::f64 || dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
  if (unit == nullptr || hz <= 0 || !floating)
    return {0, fmt::format("no peak is known for {} on this processor", name_of(dtype))};
  const double per_cycle =
      unit->flops_per_cycle * halves(cpuinfo, *unit) * (dtype == DType::f64 ? 0.5 : 1);
  return {cores * hz * per_cycle,
          fmt::format("estimate: {:.4g} core{} x {:.2f} GHz{} x {:g} {} FLOP/cycle of {}", cores,
                      cores == 1 ? "" : "s", hz / 1e9, clock_hz > 0 ? " (measured)" : "", per_cycle,
                      name_of(dtype), unit->name),
          hz};
}

Peak host_peak(DType dtype, int ranks_on_node) {
  TESSERA_EXPECT(ranks_on_node >= 1, "{} ranks on a node", ranks_on_node);
  const std::string cpuinfo = read_text("/proc/cpuinfo").value_or("");
  const double share = static_cast<double>(physical_cores(cpuinfo)) / ranks_on_node;
  return host_peak_of(cpuinfo, dtype, std::min<double>(share, count_cores(cpuinfo, allowed_here)),
                      core_clock_hz(load_of(flags_in(cpuinfo))));
}

}  // namespace tessera::metrics
