// SPDX-License-Identifier: Apache-2.0
#include "memory_check.hpp"

#include <fmt/format.h>

#include "tessera/comm/agreement.hpp"
#include "tessera/plan/memory_need.hpp"
#include "tessera/train/device.hpp"

namespace tessera::train {

void check_memory(const plan::JobPlan& plan, comm::World& world, at::Device device, int sharers,
                  bool trains) {
  const mesh::Coord place = plan.layout.coord_of(mesh::Rank(world.rank()));
  const auto need = plan::memory_need(plan, schedule::PipelineRank(place[mesh::Axis::pp]), trains);
  if (!need) return;
  const std::string& model = plan.model.spec->name;
  const std::string rank = fmt::format("on rank {} ({})", world.rank(), world.host());
  // state in host memory, work in the device's
  const bool apart = !device.is_cpu() && plan.sharding.offload;
  std::int64_t needed = apart ? need->work() : need->total(), free = free_bytes(device, sharers);
  // Of cells that are timed first, some rank has the least state: any, with what it has of memory.
  if (!plan.microbatches.pipeline.ranges) {
    needed = apart ? 0 : need->state();
    free = comm::all_reduce_scalar(world.control(), free, comm::Op::max);
  }
  comm::on_all_ranks(world.control(), [&] {
    plan::check_need(model, *need, needed, free, rank);
    if (apart)
      plan::check_need(model, *need, need->state(), free_bytes(at::kCPU, world.local_size()),
                       "in host memory " + rank);
  });
}

void check_memory_alone(const plan::InferencePlan& plan, const model::ModelSpec& model,
                        at::Device device) {
  const plan::MemoryNeed need =
      plan::memory_need(model, mesh::Layout::resolve({1, 1, 1, 1, 1}, 1),
                        {{0, static_cast<std::int64_t>(model.cells.size())}},
                        {.precision = plan.precision, .trains = false});
  plan::check_need(model.name, need, need.total(), free_bytes(device, 1), "in one process",
                   plan::Remedy::more_memory);
}

}  // namespace tessera::train
