#include "tessera/train/evaluation.hpp"

#include <filesystem>

#include "tessera/base/error.hpp"
#include "tessera/train/collective.hpp"
#include "tessera/train/device.hpp"
#include "tessera/train/hf_weights.hpp"
#include "tessera/train/model_weights.hpp"
#include "tessera/train/pipeline_plan.hpp"
#include "tessera/train/samples.hpp"
#include "tessera/train/setup.hpp"
#include "tessera/train/stage_ranges.hpp"

namespace tessera::train {
namespace {

void load_weights(const config::JobConfig& job, const model::Model& model, mesh::DeviceMesh& mesh,
                  parallel::Stages& stages) {
  const auto& path = job.checkpoint.initial_load_path;
  if (path && job.checkpoint.initial_load_in_hf)
    on_all_ranks(mesh.control(), [&] { load_hf_weights(stages.holdings(), model, *path); });
  else
    load_model(
        stages.holdings(), model, mesh,
        path ? std::filesystem::path(*path) : std::filesystem::path(job.job.dump_folder) / job.checkpoint.folder);
}

}  // namespace

ValidationResult evaluate(comm::World& world, const config::Resolved& resolved) {
  const config::JobConfig& job = resolved.job;
  require(job.validation.enable, ExitCode::usage, "validation is switched off ({}); leave validation.enable out",
          resolved.origin("validation.enable"));
  const mesh::Layout layout = layout_of(resolved, world.size());
  const torch::Device device = choose_device(world);
  const BatchPlan plan = BatchPlan::make(job, layout), validated = BatchPlan::of_validation(job, layout);
  const Samples samples = open_job_samples(job, plan.global_batch, world.control());
  const model::Model model = model_of(job, samples.vocab, job.training.seq_len, device);
  check_job_fits(job, model, layout, plan);
  check_model_fits(model, layout, validated, !job.parallelism.disable_sequence_parallel);
  mesh::DeviceMesh mesh(world, layout, backend_of(job, device));
  const parallel::StageMap map = pipeline_plan_of(job, model, layout, plan).map;
  parallel::StageOptions options = stage_options_of(job, plan, device);
  options.freeze = {"."};  // nothing is trained: no memory for gradients
  parallel::Stages stages(model, stage_ranges_of(job, model, mesh, map.stages(), options), map, mesh, options);
  load_weights(job, model, mesh, stages);
  return Validator(job, model, mesh, stages, *samples.validation).run(0);
}

}  // namespace tessera::train
