// SPDX-License-Identifier: Apache-2.0
#include "beginning.hpp"

#include "load_options.hpp"
#include "tessera/base/error.hpp"
#include "tessera/inputs/found_weights.hpp"
#include "tessera/train/model_weights.hpp"

namespace tessera::train {
namespace {

class Beginning {
 public:
  Beginning(const plan::JobPlan& plan, mesh::DeviceMesh& mesh, Trainer& trainer)
      : plan_(plan), mesh_(mesh), trainer_(trainer) {}

  LoadedState begin() {
    switch (weight_origin(plan_.load, config::JobUse::training, mesh_)) {
      case plan::WeightOrigin::own:
        return resume();
      case plan::WeightOrigin::initial_state:
        return start_from(*plan_.load.from);
      case plan::WeightOrigin::initial_values:
        initialize();
    }
    return {};
  }

 private:
  LoadTarget target() {
    return {trainer_.stages().holdings(), *plan_.model.spec, mesh_,
            trainer_.source().tokenizer_hash(),
            model::properties_for_others(plan_.model.shape, plan_.data.seq_len)};
  }

  void initialize() { trainer_.stages().initialize(plan_.run.seed); }

  LoadedState resume() {
    const plan::LoadChoice& choice = plan_.load.own;
    if (choice.step < 0)
      if (const auto last = open_model_only(mesh_.control(), plan_.load.checkpoints))
        return state_at_end(*last);
    if (choice.is_partial()) initialize();
    auto loaded = load_state(trainer_, plan_.load.checkpoints, choice);
    require(loaded.has_value(), ExitCode::checkpoint, "the checkpoints in {} disappeared",
            plan_.load.checkpoints.string());
    return *std::move(loaded);
  }

  LoadedState start_from(const plan::InitialState& from) {
    if (plan_.load.initial.is_partial()) initialize();
    if (from.branch) return branch();
    load_initial_weights(target(), from, plan_.load.initial);
    return {};
  }

  /// After a last checkpoint with the model alone there is nothing to resume from.
  LoadedState state_at_end(const checkpoint::CheckpointReader& last) {
    require(last.step() >= plan_.run.steps, ExitCode::usage,
            "{} holds the model alone (checkpoint.last_save_model_only), so that training.steps = "
            "{} cannot follow its step {}; move it away to resume from an older checkpoint, or "
            "choose another job.dump_folder and start from this model by "
            "checkpoint.initial_load_path",
            last.folder().string(), plan_.run.steps, last.step());
    load_model(target(), last.folder());
    TrainState state;
    state.step = last.step();
    state.samples = trainer_.first_sample(state.step);
    trainer_.set_state(state);
    return {state, {}, {}, last.folder(), true};
  }

  LoadedState branch() {
    const std::filesystem::path& from = plan_.load.from->path;
    auto loaded = load_branch(trainer_);
    require(loaded.has_value(), ExitCode::checkpoint, "{} holds no checkpoint of Tessera{}",
            from.string(), inputs::held_instead(from, inputs::remedy_for_weights(true)));
    require(loaded->state.step < plan_.run.steps, ExitCode::usage,
            "{} is of step {}, so that training.steps = {} leaves nothing to train; choose more "
            "steps, or an earlier checkpoint",
            loaded->folder.string(), loaded->state.step, plan_.run.steps);
    return *std::move(loaded);
  }

  const plan::JobPlan& plan_;
  mesh::DeviceMesh& mesh_;
  Trainer& trainer_;
};

}  // namespace

LoadedState begin_state(const plan::JobPlan& plan, mesh::DeviceMesh& mesh, Trainer& trainer) {
  return Beginning(plan, mesh, trainer).begin();
}

}  // namespace tessera::train
