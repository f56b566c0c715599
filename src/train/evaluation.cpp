#include "tessera/train/evaluation.hpp"

#include <chrono>
#include <optional>

#include "tessera/base/error.hpp"
#include "tessera/train/arithmetic.hpp"
#include "tessera/train/device.hpp"
#include "tessera/train/memory_need.hpp"
#include "tessera/train/model_weights.hpp"
#include "tessera/train/pipeline_plan.hpp"
#include "tessera/train/samples.hpp"
#include "tessera/train/setup.hpp"
#include "tessera/train/stage_ranges.hpp"
#include "unwatch.hpp"

namespace tessera::train {

ValidationResult evaluate(comm::World& world, const config::Resolved& resolved) {
  const config::JobConfig& job = resolved.job;
  use_share_of_cores(world);
  require(job.validation.enable, ExitCode::usage, "validation.enable is false ({}); remove it",
          resolved.origin("validation.enable"));
  const mesh::Layout layout = layout_of(resolved, world.size());
  std::optional<comm::Watchdog> watchdog(std::in_place, std::chrono::seconds(job.comm.init_timeout_seconds),
                                         world.rank(), end_hanging_job(world, job));
  const OwnDevice own = choose_device(world, job.job, wants_nccl(job));
  const at::Device device = with_arithmetic(job, own.device);
  const BatchPlan plan = BatchPlan::make(job, layout), validated = BatchPlan::of_validation(job, layout);
  const Samples samples = open_job_samples(job, plan.global_batch, world.control());
  const model::Model model = model_of(job, samples.vocab, job.training.seq_len, device);
  check_job_fits(job, model, layout, plan);
  check_model_fits(model, layout, validated, !job.parallelism.disable_sequence_parallel);
  mesh::DeviceMesh mesh(world, layout, backend_of(job, device), ordered_sums_of(job, device), memory_of(device));
  const Unwatch unwatch(watchdog);
  const parallel::StageMap map = pipeline_plan_of(job, model, layout, plan).map;
  parallel::StageOptions options = stage_options_of(job, plan, device);
  options.freeze = {"."};  // nothing is trained: no memory for gradients
  check_memory(job, model, mesh, plan, options, world, own.ranks);
  parallel::Stages stages(model, stage_ranges_of(job, model, mesh, map.stages(), options), map, mesh, options);
  {
    const comm::Watchdog::Patience patience(std::chrono::seconds(job.comm.save_timeout_seconds));
    load_weights_of(job, stages.holdings(), model, mesh);
  }
  return Validator(job, model, mesh, stages, *samples.validation).run(0);
}

}  // namespace tessera::train
