// SPDX-License-Identifier: Apache-2.0
// How a rank's GPU, its cores and the network adapters are connected in the node. Memory traffic
// between NUMA nodes is slower, and a rank on one core has no core left for the threads of NCCL and
// of autograd.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace tessera::train {

/// A network adapter: "mlx5_0", and the NUMA node at which it is; -1 where the system does not say.
struct Adapter {
  std::string name;
  int numa = -1;
  bool operator==(const Adapter&) const = default;
};

/// What one rank has. NUMA nodes are numbered as the kernel does; a machine with one may give the
/// GPU none (-1).
struct Placement {
  std::string pci;                ///< the GPU's place on the PCI bus, "0000:17:00.0"
  int gpu_numa = -1;              ///< the GPU's NUMA node
  std::vector<int> cores;         ///< that the rank may run on, in order
  std::vector<int> core_numas;    ///< NUMA nodes of these cores, in order
  std::vector<Adapter> adapters;  ///< of the node: InfiniBand, or, without it, Ethernet on a bus
  bool operator==(const Placement&) const = default;
};

struct RankPlacement {
  std::string host;
  Placement place;
};

/// Reads it from the folder that is used as /sys. What is not there is omitted.
Placement placement_of(const std::string& pci, const std::filesystem::path& sys = "/sys");

/// As one line, and back.
std::string text_of(const RankPlacement& place);
RankPlacement rank_placement_of(const std::string& text);

/// One line for all nodes whose ranks are placed alike. `ranks` in rank order, those of a node in
/// local order.
std::vector<std::string> placement_lines(std::span<const RankPlacement> ranks);

/// What costs speed, with what to do; one line for each kind of fault, at its first rank.
std::vector<std::string> placement_warnings(std::span<const RankPlacement> ranks);

}  // namespace tessera::train
