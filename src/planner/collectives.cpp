// SPDX-License-Identifier: Apache-2.0
#include "collectives.hpp"

#include <algorithm>
#include <cmath>

#include "physics.hpp"

namespace tessera::planner {
namespace {

double nvlink(const Machine& machine) {
  if (machine.host) return machine.nvlink_bytes_per_second;  // measured between ranks
  return machine.nvlink_bytes_per_second * physics::kNvlinkEfficiency;
}

double nic(const Machine& machine) {
  if (machine.host) return machine.nic_bytes_per_second;
  return machine.nic_bytes_per_second * physics::kNicEfficiency;
}

/// The latencies of all steps of a ring, and on a host of all rounds of a tree.
double hop_seconds(const Machine& machine, const Group& group) {
  if (machine.host) return std::ceil(std::log2(group.ranks)) * machine.host->node.call_seconds;
  const int domains = group.domains();
  return domains * (group.local - 1) * physics::kNvlinkHopSeconds +
         (domains > 1 ? domains * physics::kNicHopSeconds : 0);
}

/// Up and down trees of the domains, whose ranks are chains (NCCL's double binary trees, which
/// share the bytes).
double tree_seconds(const Machine& machine, double bytes, const Group& group) {
  const double inside = group.local > 1 ? bytes / nvlink(machine) : 0;
  const double between = bytes / (nic(machine) * group.local);
  const double hops = std::ceil(std::log2(group.domains())) * physics::kNicHopSeconds +
                      (group.local - 1) * physics::kNvlinkHopSeconds;
  return 2 * (std::max(inside, between) + hops);
}

}  // namespace

Group group_of(const Machine& machine, int ranks, int stride) {
  return {ranks, std::clamp(machine.nvlink_domain / std::max(1, stride), 1, std::max(1, ranks))};
}

bool share_cores(const Machine& machine) { return machine.host && machine.host->crowd > 1; }

double turn_seconds(const Machine& machine) {
  return share_cores(machine) ? machine.host->node.switch_seconds : 0;
}

double gather_seconds(const Machine& machine, double bytes, const Group& group) {
  if (group.ranks <= 1 || bytes <= 0) return 0;
  const double inside =
      group.local > 1 ? bytes * (group.ranks - 1) / group.ranks / nvlink(machine) : 0;
  const int domains = group.domains();
  const double between =
      domains > 1 ? bytes * (domains - 1) / domains / (nic(machine) * group.local) : 0;
  return std::max(inside, between) + hop_seconds(machine, group);
}

double all_reduce_seconds(const Machine& machine, double bytes, const Group& group) {
  const double ring = 2 * gather_seconds(machine, bytes, group);
  if (group.domains() == 1 || machine.host || bytes <= 0) return ring;
  return std::min(ring, tree_seconds(machine, bytes, group));
}

double exchange_seconds(const Machine& machine, double sent_bytes, const Group& group,
                        double kept_between) {
  if (group.ranks <= 1 || sent_bytes <= 0) return 0;
  const double remote = static_cast<double>(group.ranks - group.local) / group.ranks;
  double inside = sent_bytes * (group.local - 1) / group.ranks / nvlink(machine);
  // What reaches a domain once is forwarded within it.
  if (kept_between < 1) inside += sent_bytes * remote / nvlink(machine);
  const double between = sent_bytes * remote * kept_between / nic(machine);
  if (machine.host) return std::max(inside, between) + hop_seconds(machine, group);
  return std::max(inside, between) +
         (group.domains() > 1 ? physics::kNicHopSeconds : physics::kMessageSeconds);
}

double send_seconds(const Machine& machine, double bytes, const Group& group) {
  if (machine.host) return bytes / nvlink(machine) + machine.host->node.call_seconds;
  if (group.domains() == 1) return bytes / nvlink(machine) + physics::kMessageSeconds;
  return bytes / nic(machine) + physics::kNicHopSeconds;
}

}  // namespace tessera::planner
