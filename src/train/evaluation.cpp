// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/evaluation.hpp"

#include <chrono>
#include <optional>

#include "hang_watch.hpp"
#include "tessera/base/error.hpp"
#include "tessera/kernels/host_kernels.hpp"
#include "tessera/train/arithmetic.hpp"
#include "tessera/train/device.hpp"
#include "tessera/train/memory_need.hpp"
#include "tessera/train/model_weights.hpp"
#include "tessera/train/pipeline_plan.hpp"
#include "tessera/train/samples.hpp"
#include "tessera/train/setup.hpp"
#include "tessera/train/stage_ranges.hpp"

namespace tessera::train {

namespace {

/// What communicates: all of it is there until the failure of any part has been told.
class Evaluation {
 public:
  Evaluation(comm::World& world, const config::Resolved& resolved)
      : world_(world),
        job_(resolved.job),
        layout_(layout_of(resolved, world.size())),
        own_(watched_device()),
        device_(with_arithmetic(job_, own_.device)),
        plan_(BatchPlan::make(job_, layout_)),
        samples_(open_job_samples(job_, plan_.global_batch, world.control())),
        model_(checked_model()),
        mesh_(world, layout_, backend_of(job_, device_), ordered_sums_of(job_, device_),
              memory_of(device_)) {}

  ValidationResult run() {
    const schedule::StageMap map = pipeline_plan_of(job_, model_, layout_, plan_).map;
    parallel::StageOptions options = stage_options_of(job_, plan_, device_);
    options.sharding.freeze = {"."};  // nothing is trained: no memory for gradients
    check_memory(job_, model_, mesh_, plan_, options, world_, own_.ranks);
    stages_.emplace(model_, stage_ranges_of(job_, model_, mesh_, map.stages(), options), map, mesh_,
                    options);
    {
      const comm::Watchdog::Patience patience(std::chrono::seconds(job_.comm.save_timeout_seconds));
      load_weights_of(job_, stages_->holdings(), model_, mesh_);
    }
    const ValidationResult result =
        Validator(job_, model_, mesh_, *stages_, *samples_.validation).run(0);
    watchdog_.reset();  // communicators end one by one on each rank: no failure
    return result;
  }

 private:
  OwnDevice watched_device() {
    watch_for_hangs(watchdog_, world_, job_, job_.comm.init_timeout_seconds);
    return choose_device(world_, job_.job, wants_nccl(job_));
  }

  model::Model checked_model() const {
    model::Model model = model_of(job_, samples_.vocab, job_.training.seq_len, device_);
    check_job_fits(job_, model, layout_, plan_);
    check_model_fits(model, layout_, BatchPlan::of_validation(job_, layout_),
                     !job_.parallelism.disable_sequence_parallel);
    return model;
  }

  comm::World& world_;
  const config::JobConfig& job_;
  mesh::Layout layout_;
  std::optional<comm::Watchdog> watchdog_;
  OwnDevice own_;
  at::Device device_;
  BatchPlan plan_;
  Samples samples_;
  model::Model model_;
  mesh::DeviceMesh mesh_;
  std::optional<parallel::Stages> stages_;
};

}  // namespace

ValidationResult evaluate(comm::World& world, const config::Resolved& resolved,
                          const OnFailure& failed) {
  use_share_of_cores(world);
  kernels::choose_host_kernels(resolved.job.kernels.backend);
  require(resolved.job.validation.enable, ExitCode::usage,
          "validation.enable is false ({}); remove it", resolved.origin("validation.enable"));
  std::optional<Evaluation> evaluation;
  try {
    return evaluation.emplace(world, resolved).run();
  } catch (...) {
    failed();
    throw;
  }
}

}  // namespace tessera::train
