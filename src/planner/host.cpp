// SPDX-License-Identifier: Apache-2.0
#include "tessera/planner/host.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "tessera/base/text_file.hpp"
#include "tessera/metrics/core_speed.hpp"
#include "tessera/metrics/flops.hpp"
#include "tessera/planner/machine.hpp"

namespace tessera::planner {
namespace {

std::string processor_in(std::string_view cpuinfo) {
  const std::size_t line = cpuinfo.find("model name");
  if (line == std::string_view::npos) return "unknown";
  cpuinfo.remove_prefix(line);
  cpuinfo = cpuinfo.substr(0, cpuinfo.find('\n'));
  const std::size_t colon = cpuinfo.find(": ");
  return colon == std::string_view::npos ? "unknown" : std::string(cpuinfo.substr(colon + 2));
}

bool has_word(std::string_view cpuinfo, std::string_view word) {
  return cpuinfo.find(word) != std::string_view::npos;
}

constexpr double kUnknownClock_hz = 2e9;

/// What is usual: products in shares of the processor's peak, all else by its clock. Measured on an
/// AMD EPYC (Zen 4) and an Intel Xeon (Cascade Lake), which has twice the FLOP of a cycle.
void assume_rates(Host& host, std::string_view cpuinfo, double clock_hz) {
  host.f32_flops_per_second = 0.9 * host.f32_peak;
  // Intel's AVX512-BF16 does as many products in a cycle as its float32 instructions. Elsewhere
  // bfloat16 is widened where it has no instructions.
  const bool matrix_unit = has_word(cpuinfo, "amx_bf16");
  const bool fast =
      matrix_unit || (has_word(cpuinfo, "avx512_bf16") && has_word(cpuinfo, "AuthenticAMD"));
  host.bf16_flops_per_second =
      fast ? (matrix_unit ? 0.4 : 0.88) * host.bf16_peak : 0.8 * host.f32_flops_per_second;
  host.f32_operand_bytes_per_second = host.bf16_operand_bytes_per_second = 4 * clock_hz;
  constexpr double kUsualFlops = 32;  // of a cycle
  const double width = std::min(1.0, host.f32_peak / clock_hz / kUsualFlops);
  host.attention_forward = 19 * width * clock_hz;
  host.attention_backward = 17.5 * width * clock_hz;
  host.scores_forward = 0.6 * width * clock_hz;
  host.scores_backward = 1.9 * width * clock_hz;
  host.kernel_seconds = 22e3 / clock_hz;
  host.fork_seconds = 11e3 / clock_hz;
}

}  // namespace

Machine machine_of(const Host& host, int ranks, const std::string& name) {
  HostRank rank{.node = host};
  const double cores = static_cast<double>(host.cores) / ranks;
  rank.threads = std::max(1, static_cast<int>(std::floor(cores + 1e-6)));
  rank.speed = rank.threads > 1 ? rank.threads * host.thread_rate : 1;
  rank.crowd = std::max(1.0, 1 / cores);
  Machine out;
  out.name = name;
  out.memory_bytes = host.memory_bytes / ranks;
  out.hbm_bytes_per_second = host.copy_bytes_per_second * rank.speed;
  const auto set = [&](Format format, double peak, double rate) {
    out.peak[static_cast<std::size_t>(format)] = peak * rank.threads;
    out.ceiling[static_cast<std::size_t>(format)] = rate * rank.speed;
  };
  set(Format::f32, host.f32_peak, host.f32_flops_per_second);
  set(Format::bf16, host.bf16_peak, host.bf16_flops_per_second);
  out.attention.fill({host.attention_forward * rank.speed, host.attention_backward * rank.speed});
  out.nvlink_bytes_per_second = out.nic_bytes_per_second = host.rank_bytes_per_second;
  out.nvlink_domain = ranks;
  out.host_bytes_per_second = host.copy_bytes_per_second;
  if (host.checkpoint_bytes_per_second > 0)
    out.storage_bytes_per_second = host.checkpoint_bytes_per_second / ranks;
  out.host = rank;
  return out;
}

Machine share_of(const Machine& machine, int ranks) {
  return machine.host ? machine_of(machine.host->node, ranks, machine.name) : machine;
}

Host this_host() {
  const std::string cpuinfo = read_text("/proc/cpuinfo").value_or("");
  Host host;
  host.processor = processor_in(cpuinfo);
  host.cores = metrics::physical_cores(cpuinfo);
  host.memory_bytes =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  const metrics::Peak peak = metrics::host_peak(DType::f32, host.cores);
  host.f32_peak = peak.flops;
  host.bf16_peak = metrics::host_peak_of(cpuinfo, DType::bf16, 1, peak.clock_hz).flops;
  assume_rates(host, cpuinfo, peak.clock_hz > 0 ? peak.clock_hz : kUnknownClock_hz);
  host.copy_bytes_per_second = metrics::copy_rate(host.cores);
  host.thread_rate = 0.94;
  host.rank_bytes_per_second = 5e9;
  host.call_seconds = 2e-6;
  host.switch_seconds = 1.4e-4;
  return host;
}

}  // namespace tessera::planner
