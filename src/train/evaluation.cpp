// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/evaluation.hpp"

#include <chrono>
#include <optional>

#include "measured_split.hpp"
#include "memory_check.hpp"
#include "run_context.hpp"
#include "tessera/base/error.hpp"
#include "tessera/inputs/samples.hpp"
#include "tessera/kernels/host_kernels.hpp"
#include "tessera/parallel/tensor_buffer.hpp"
#include "tessera/train/arithmetic.hpp"
#include "tessera/train/device.hpp"
#include "tessera/train/model_weights.hpp"
#include "tessera/train/setup.hpp"

namespace tessera::train {

namespace {

/// What communicates: all of it is there until the failure of any part has been reported.
class Evaluation {
 public:
  Evaluation(comm::World& world, const plan::JobPlan& plan)
      : world_(world),
        plan_(plan),
        own_(watched_device(watchdog_, world, plan)),
        device_(with_arithmetic(plan.arithmetic, own_.device)),
        samples_(open_checked_samples()),
        model_(model_of(plan, device_)),
        mesh_(world, plan.layout, backend_of(plan, device_),
              ordered_sums_of(plan.arithmetic, device_), parallel::memory_of(device_)) {}

  ValidationResult run() {
    const plan::PipelinePlan& pipeline = plan_.microbatches.pipeline;
    parallel::StageOptions options = stage_options_of(plan_, device_);
    options.sharding.freeze = {"."};  // nothing is trained: no memory for gradients
    stages_.emplace(model_, stage_ranges_of(pipeline, model_, mesh_, options), pipeline.map, mesh_,
                    options);
    {
      const comm::Watchdog::Patience patience(
          std::chrono::seconds(plan_.comm.save_timeout_seconds));
      load_newest_weights(
          {stages_->holdings(), model_, mesh_, samples_.validation->tokenizer_hash(),
           model::properties_for_others(plan_.model.shape, plan_.data.seq_len)},
          plan_.load);
    }
    const ValidationResult result =
        Validator(plan_.data, model_, mesh_, *stages_, *samples_.validation).run(0);
    end_watch(watchdog_, world_, plan_);
    return result;
  }

 private:
  /// A text is long to read: what does not fit is said before.
  inputs::Samples open_checked_samples() {
    check_memory(plan_, world_, device_, own_.ranks, false);
    return plan_.data.validation->path
               ? inputs::open_validation_samples(plan_.data, world_.control())
               : inputs::open_samples(plan_.data, plan_.batch().global_batch, world_.control());
  }

  comm::World& world_;
  const plan::JobPlan& plan_;
  std::optional<comm::Watchdog> watchdog_;
  OwnDevice own_;
  at::Device device_;
  inputs::Samples samples_;
  model::Model model_;
  mesh::DeviceMesh mesh_;
  std::optional<parallel::Stages> stages_;
};

}  // namespace

ValidationResult evaluate(comm::World& world, const plan::JobPlan& plan, const OnFailure& failed) {
  use_share_of_cores(world);
  kernels::choose_host_kernels(plan.device.kernels);
  require(plan.data.validation.has_value(), ExitCode::usage,
          "validation.enable is false; remove it");
  std::optional<Evaluation> evaluation;
  try {
    return evaluation.emplace(world, plan).run();
  } catch (...) {
    failed();
    throw;
  }
}

}  // namespace tessera::train
