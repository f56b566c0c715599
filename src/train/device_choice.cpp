// SPDX-License-Identifier: Apache-2.0
#include <span>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/log.hpp"
#include "tessera/train/device.hpp"
#include "tessera/train/device_agreement.hpp"
#include "tessera/train/placement.hpp"

namespace tessera::train {
namespace {

/// Rank 0 says how GPUs, cores and network adapters are connected, and what is wrong with that.
/// Collective.
void tell_placement(comm::World& world, std::span<const RankDevice> ranks, const std::string& pci) {
  std::vector<RankPlacement> places;
  for (const std::string& text : comm::all_gather_strings(
           world.control(), text_of(RankPlacement{world.host(), placement_of(pci)})))
    places.push_back(rank_placement_of(text));
  if (world.rank() != 0) return;
  for (const std::string& line : placement_lines(places)) log::info("{}", line);
  for (const std::string& line : placement_warnings(places)) log::warning("{}", line);
  if (const std::string line = device_warning(ranks); !line.empty()) log::warning("{}", line);
}

}  // namespace

OwnDevice choose_device(comm::World& world, const plan::DevicePlan& plan, bool with_nccl) {
  const comm::DeviceFacts own = comm::device_facts(world.local_rank(), plan.share);
  std::vector<RankDevice> ranks;
  for (const std::string& text :
       comm::all_gather_strings(world.control(), text_of({world.host(), own})))
    ranks.push_back(rank_device_of(text));
  const std::string problem = device_problem(ranks, plan.choice, plan.share, with_nccl);
  require(problem.empty(), ExitCode::environment, "{}", problem);
  const bool on_gpu = own.build && plan.choice != plan::DeviceChoice::cpu;
  if (on_gpu) tell_placement(world, ranks, own.pci);
  if (own.build && !on_gpu && world.rank() == 0)
    log::info("this build has GPU support and trains on the host, as job.device = \"cpu\" asks");
  if (!own.build && plan.share && world.rank() == 0)
    log::warning("job.share_device has no effect: this build of Tessera trains on the host");
  if (!on_gpu) return {at::kCPU, world.local_size()};
  return {take_device(own.index), ranks_on_gpu(ranks, {world.host(), own})};
}

}  // namespace tessera::train
