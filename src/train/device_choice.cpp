#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/log.hpp"
#include "tessera/train/device.hpp"
#include "tessera/train/device_agreement.hpp"

namespace tessera::train {

OwnDevice choose_device(comm::World& world, const config::Job& job) {
  const comm::DeviceFacts own = comm::device_facts(world.local_rank(), job.share_device);
  std::vector<RankDevice> ranks;
  for (const std::string& text : comm::all_gather_strings(world.control(), text_of({world.host(), own})))
    ranks.push_back(rank_device_of(text));
  const std::string problem = device_problem(ranks, job.device, job.share_device);
  require(problem.empty(), ExitCode::environment, "{}", problem);
  if (own.build && job.device == "cpu" && world.rank() == 0)
    log::info("this build has GPU support and trains on the host, as job.device = \"cpu\" asks");
  if (!own.build && job.share_device && world.rank() == 0)
    log::warning("job.share_device has no effect: this build of Tessera trains on the host");
  if (!own.build || job.device == "cpu") return {at::kCPU, world.local_size()};
  return {take_device(own.index), ranks_on_gpu(ranks, {world.host(), own})};
}

}  // namespace tessera::train
