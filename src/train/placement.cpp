// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/placement.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "tessera/base/json.hpp"
#include "tessera/train/cores.hpp"

namespace tessera::train {
namespace {

namespace fs = std::filesystem;
using Ranks = std::span<const RankPlacement>;

int number_in(const fs::path& file) {
  int number = -1;
  std::ifstream(file) >> number;
  return number;
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none))
    names.push_back(entry.path().filename());
  std::ranges::sort(names);
  return names;
}

std::vector<int> own_cores() {
  const std::string mask = allowed_cores();
  std::vector<int> cores;
  for (std::size_t core = 0; core < 8 * mask.size(); ++core)
    if (allows(mask, core)) cores.push_back(static_cast<int>(core));
  return cores;
}

/// The kernel links each core's folder to that of its NUMA node.
std::vector<int> numas_of(const std::vector<int>& cores, const fs::path& sys) {
  std::set<int> numas;
  for (const std::string& name : names_in(sys / "devices/system/node")) {
    int numa = 0;
    if (std::sscanf(name.c_str(), "node%d", &numa) != 1) continue;
    const auto is_there = [&](int core) {
      return fs::exists(sys / "devices/system/node" / name / fmt::format("cpu{}", core));
    };
    if (std::ranges::any_of(cores, is_there)) numas.insert(numa);
  }
  return {numas.begin(), numas.end()};
}

/// Those on a bus; a bridge or a loopback has no device.
std::vector<Adapter> adapters_in(const fs::path& folder) {
  std::vector<Adapter> adapters;
  for (const std::string& name : names_in(folder))
    if (fs::exists(folder / name / "device/numa_node"))
      adapters.push_back({name, number_in(folder / name / "device/numa_node")});
  return adapters;
}

/// "0-7,16" of sorted numbers.
std::string ranges_of(const std::vector<int>& numbers) {
  std::string text;
  for (std::size_t first = 0, last = 0; first < numbers.size(); first = ++last) {
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ",", numbers[first]);
    if (last > first) text += fmt::format("-{}", numbers[last]);
  }
  return text.empty() ? "unknown" : text;
}

std::string numa_text(const std::vector<int>& numas) {
  return numas.empty() || numas.front() < 0 ? std::string()
                                            : fmt::format(" (NUMA {})", fmt::join(numas, ", "));
}

std::string cores_text(const Placement& place) {
  return fmt::format("core{} {}{}", place.cores.size() == 1 ? "" : "s", ranges_of(place.cores),
                     numa_text(place.core_numas));
}

/// Ranks by host, hosts in the order of their first rank.
std::vector<std::vector<std::size_t>> by_node(Ranks ranks) {
  std::map<std::string, std::size_t> number;
  std::vector<std::vector<std::size_t>> nodes;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const auto [node, is_new] = number.try_emplace(ranks[rank].host, nodes.size());
    if (is_new) nodes.emplace_back();
    nodes[node->second].push_back(rank);
  }
  return nodes;
}

std::string text_of_node(Ranks ranks, const std::vector<std::size_t>& node) {
  std::vector<std::string> parts, adapters;
  for (std::size_t local = 0; local < node.size(); ++local) {
    const Placement& place = ranks[node[local]].place;
    parts.push_back(fmt::format("local rank {} GPU {}{}, {}", local, place.pci,
                                numa_text({place.gpu_numa}), cores_text(place)));
  }
  for (const Adapter& adapter : ranks[node.front()].place.adapters)
    adapters.push_back(adapter.name + numa_text({adapter.numa}));
  parts.push_back(fmt::format(
      "network {}", adapters.empty() ? "unknown" : fmt::to_string(fmt::join(adapters, ", "))));
  return fmt::to_string(fmt::join(parts, "; "));
}

std::optional<std::string> far_cores(Ranks ranks) {
  const auto is_far = [](const RankPlacement& r) {
    return r.place.gpu_numa >= 0 && !r.place.core_numas.empty() &&
           std::ranges::count(r.place.core_numas, r.place.gpu_numa) == 0;
  };
  const auto found = std::ranges::find_if(ranks, is_far);
  if (found == ranks.end()) return std::nullopt;
  return fmt::format(
      "{} of {} ranks run on cores far from their GPU, first rank {} on {}: GPU {} is at NUMA node "
      "{}, {}; bind ranks "
      "to cores near their GPUs (srun --gpu-bind=closest --cpu-bind=cores, mpirun --map-by numa)",
      std::ranges::count_if(ranks, is_far), ranks.size(), found - ranks.begin(), found->host,
      found->place.pci, found->place.gpu_numa, cores_text(found->place));
}

/// Ranks of a node that may all run on the same core, and on no other.
std::optional<std::string> one_core(Ranks ranks) {
  for (const auto& node : by_node(ranks)) {
    const std::vector<int>& cores = ranks[node.front()].place.cores;
    const auto has_the_same = [&](std::size_t rank) { return ranks[rank].place.cores == cores; };
    if (node.size() < 2 || cores.size() != 1 || !std::ranges::all_of(node, has_the_same)) continue;
    return fmt::format(
        "all {} ranks on {} are bound to core {}; give each rank cores of its own (srun "
        "--cpus-per-task, mpirun "
        "--map-by slot:PE=N)",
        node.size(), ranks[node.front()].host, cores.front());
  }
  return std::nullopt;
}

/// Computing, NCCL, checkpoints and the watchdog have threads of their own.
std::optional<std::string> single_cores(Ranks ranks) {
  const auto has_one = [](const RankPlacement& r) { return r.place.cores.size() == 1; };
  const auto found = std::ranges::find_if(ranks, has_one);
  if (found == ranks.end() || one_core(ranks)) return std::nullopt;
  return fmt::format(
      "{} of {} ranks have one core for all their threads, first rank {} on {}: {}; give each rank "
      "more (srun --cpus-per-task, mpirun --map-by slot:PE=N)",
      std::ranges::count_if(ranks, has_one), ranks.size(), found - ranks.begin(), found->host,
      cores_text(found->place));
}

}  // namespace

Placement placement_of(const std::string& pci, const fs::path& sys) {
  Placement place;
  place.pci = pci;
  place.gpu_numa = number_in(sys / "bus/pci/devices" / pci / "numa_node");
  place.cores = own_cores();
  place.core_numas = numas_of(place.cores, sys);
  place.adapters = adapters_in(sys / "class/infiniband");
  if (place.adapters.empty()) place.adapters = adapters_in(sys / "class/net");
  return place;
}

std::string text_of(const RankPlacement& rank) {
  const Placement& p = rank.place;
  std::vector<std::pair<std::string, int>> adapters;
  for (const Adapter& adapter : p.adapters) adapters.emplace_back(adapter.name, adapter.numa);
  return json_text(
      nlohmann::json::array({rank.host, p.pci, p.gpu_numa, p.cores, p.core_numas, adapters}));
}

RankPlacement rank_placement_of(const std::string& text) {
  RankPlacement rank;
  Placement& p = rank.place;
  std::vector<std::pair<std::string, int>> adapters;
  const nlohmann::json values = parse_valid_json(text);
  values.at(0).get_to(rank.host), values.at(1).get_to(p.pci), values.at(2).get_to(p.gpu_numa);
  values.at(3).get_to(p.cores), values.at(4).get_to(p.core_numas), values.at(5).get_to(adapters);
  for (auto& [name, numa] : adapters) p.adapters.push_back({std::move(name), numa});
  return rank;
}

std::vector<std::string> placement_lines(Ranks ranks) {
  std::vector<std::pair<std::string, std::vector<std::string>>> kinds;
  for (const auto& node : by_node(ranks)) {
    const std::string text = text_of_node(ranks, node);
    auto kind = std::ranges::find(kinds, text, [](const auto& k) { return k.first; });
    if (kind == kinds.end()) kind = kinds.insert(kinds.end(), {text, {}});
    kind->second.push_back(ranks[node.front()].host);
  }
  std::vector<std::string> lines;
  for (const auto& [text, hosts] : kinds)
    lines.push_back(fmt::format(
        "placement on {}{}: {}", hosts.front(),
        hosts.size() > 1
            ? fmt::format(" and {} more node{}", hosts.size() - 1, hosts.size() > 2 ? "s" : "")
            : "",
        text));
  return lines;
}

std::vector<std::string> placement_warnings(Ranks ranks) {
  std::vector<std::string> lines;
  for (const auto& rule : {&far_cores, &one_core, &single_cores})
    if (auto line = rule(ranks)) lines.push_back(std::move(*line));
  return lines;
}

}  // namespace tessera::train
