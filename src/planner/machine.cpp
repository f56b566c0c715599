// SPDX-License-Identifier: Apache-2.0
#include "tessera/planner/machine.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <span>

#include "facts_file.hpp"
#include "host_keys.hpp"
#include "physics.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/text_file.hpp"
#include "tessera/planner/memory.hpp"

namespace tessera::planner {
namespace {

using config::TomlEntry;

constexpr std::array<const char*, kFormats> kFormatNames{"fp32", "bf16", "fp8", "fp4"};
constexpr std::array<const char*, kAttentionKernels> kKernelNames{"flash1", "flash2", "fused"};

/// A key of [gpu] or [links]: a number, and the factor that makes it a value without prefix.
struct Quantity {
  const char* key;
  double unit;
  double Machine::*value;
};
constexpr std::array<Quantity, 5> kGpu{{{"memory_gib", kGiB, &Machine::memory_bytes},
                                        {"hbm_tb_s", 1e12, &Machine::hbm_bytes_per_second},
                                        {"power_w", 1, &Machine::watts},
                                        {"node_w", 1, &Machine::node_watts},
                                        {"shortfall", 1, &Machine::shortfall}}};
constexpr std::array<Quantity, 4> kLinks{
    {{"nvlink_gb_s", 1e9, &Machine::nvlink_bytes_per_second},
     {"nic_gb_s", 1e9, &Machine::nic_bytes_per_second},
     {"host_gb_s", 1e9, &Machine::host_bytes_per_second},
     {"storage_gb_s", 1e9, &Machine::storage_bytes_per_second}}};

/// Fills a Machine from the sections of its file.
class Reader {
 public:
  Reader(const FactsFile& facts, Machine& machine) : facts_(facts), machine_(machine) {}

  void read() {
    for (const TomlEntry& section : facts_.entries())
      for (const TomlEntry& entry : facts_.table(section)) read(section, entry);
    require(machine_.memory_bytes > 0 && machine_.hbm_bytes_per_second > 0 &&
                machine_.nvlink_bytes_per_second > 0 && machine_.nic_bytes_per_second > 0,
            ExitCode::usage, "{} lacks memory_gib, hbm_tb_s, nvlink_gb_s or nic_gb_s; add them",
            facts_.file());
    limit_power();
    fill_attention();
  }

 private:
  void read(const TomlEntry& section, const TomlEntry& entry) {
    if (section.key == "gpu") return gpu(entry);
    if (section.key == "links") return links(entry);
    if (section.key == "peak_tflops") return rate(entry, machine_.peak);
    if (section.key == "ceiling_tflops") return rate(entry, machine_.ceiling);
    if (section.key == "attention_tflops") return attention(entry);
    facts_.unknown(section, {"gpu", "links", "peak_tflops", "ceiling_tflops", "attention_tflops"});
  }

  void gpu(const TomlEntry& entry) {
    if (entry.key == "multiprocessors")
      machine_.multiprocessors = facts_.count(entry);
    else if (entry.key == "tile_rows")
      machine_.tile_rows = facts_.count(entry);
    else if (entry.key == "rated_w")
      rated_watts_ = facts_.number(entry);
    else
      quantity(entry, kGpu);
  }

  void links(const TomlEntry& entry) {
    if (entry.key == "nvlink_domain")
      machine_.nvlink_domain = facts_.count(entry);
    else
      quantity(entry, kLinks);
  }

  void quantity(const TomlEntry& entry, std::span<const Quantity> known) {
    const auto found = std::ranges::find(known, entry.key, &Quantity::key);
    if (found == known.end()) {
      std::vector<std::string> names;
      for (const Quantity& quantity : known) names.emplace_back(quantity.key);
      facts_.unknown(entry, names);
    }
    machine_.*found->value = facts_.number(entry) * found->unit;
    if (machine_.shortfall > 1) facts_.refuse(entry, "must be a share, at most 1");
  }

  void rate(const TomlEntry& entry, std::array<double, kFormats>& rates) {
    const auto found = std::ranges::find(kFormatNames, entry.key);
    if (found == kFormatNames.end())
      facts_.unknown(entry, {kFormatNames.begin(), kFormatNames.end()});
    rates[static_cast<std::size_t>(found - kFormatNames.begin())] = facts_.number(entry) * 1e12;
  }

  void attention(const TomlEntry& entry) {
    const auto found = std::ranges::find(kKernelNames, entry.key);
    if (found == kKernelNames.end())
      facts_.unknown(entry, {kKernelNames.begin(), kKernelNames.end()});
    const auto [forward, backward] = facts_.pair(entry);
    machine_.attention[static_cast<std::size_t>(found - kKernelNames.begin())] = {forward * 1e12,
                                                                                  backward * 1e12};
  }

  /// Ceilings that were measured at `rated_w` shrink or grow with the limit of this machine: tensor
  /// cores run into it, and power goes with about the square of the clock there.
  void limit_power() {
    const double clock = rated_watts_ > 0 ? std::sqrt(machine_.watts / rated_watts_) : 1;
    for (std::size_t f = 0; f < kFormats; ++f)
      machine_.ceiling[f] =
          std::min(machine_.ceiling[f] * clock, physics::kMostOfPeak * machine_.peak[f]);
    for (AttentionRate& rate : machine_.attention) {
      rate.forward *= clock;
      rate.backward *= clock;
    }
  }

  /// Where a generation of kernels is not known, a program takes the next one, or else the one
  /// before.
  void fill_attention() {
    auto& rates = machine_.attention;
    for (std::size_t i = kAttentionKernels; i-- > 1;)
      if (rates[i - 1].forward <= 0) rates[i - 1] = rates[i];
    for (std::size_t i = 1; i < kAttentionKernels; ++i)
      if (rates[i].forward <= 0) rates[i] = rates[i - 1];
  }

  const FactsFile& facts_;
  Machine& machine_;
  double rated_watts_ = 0;
};

}  // namespace

const char* name_of(Format format) { return kFormatNames[static_cast<std::size_t>(format)]; }

std::vector<std::string> machine_names() { return names_in("machines"); }

namespace {

/// Names without what tells variants apart mean the usual one.
constexpr std::array<std::pair<const char*, const char*>, 4> kUsualVariants{
    {{"h100", "h100-700w"},
     {"h100-sxm", "h100-700w"},
     {"a100", "a100-80gb"},
     {"a100-sxm", "a100-80gb"}}};

}  // namespace

Machine load_machine(const std::string& asked) {
  const auto usual = std::ranges::find_if(
      kUsualVariants, [&](const auto& variant) { return asked == variant.first; });
  const std::string name = usual == kUsualVariants.end() ? asked : usual->second;
  const FactsFile facts(file_of("machine", "machines", name));
  if (const std::optional<Host> host = host_in(facts)) return machine_of(*host, 1, name);
  Machine machine;
  machine.name = name;
  Reader(facts, machine).read();
  return machine;
}

namespace {

bool is_machine_file(const std::string& file) {
  try {
    load_machine(file);
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

void require_machine_file(const std::string& flag, const std::string& file) {
  require(file.ends_with(".toml"), ExitCode::usage, "{} {} does not end in .toml", flag, file);
  std::error_code ignored;
  require(!std::filesystem::exists(file, ignored) || is_machine_file(file), ExitCode::usage,
          "{} {} is there and is no machine file; name another file", flag, file);
}

void refuse_machine_file(const std::string& flag, const std::string& file) {
  require(!file.ends_with(".toml") || !is_machine_file(file), ExitCode::usage,
          "{} {} would replace a machine file; name another file", flag, file);
}

std::string file_text_of(const Machine& machine) {
  if (machine.host && !machine.name.ends_with(".toml")) return machine_file(machine.host->node, {});
  return read_text(file_of("machine", "machines", machine.name)).value_or("");
}

Machine machine_of(const std::string& name, int ranks) {
  if (name == "host") return machine_of(this_host(), ranks);
  return share_of(load_machine(name), ranks);
}

}  // namespace tessera::planner
