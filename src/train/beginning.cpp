// SPDX-License-Identifier: Apache-2.0
#include "beginning.hpp"

#include "tessera/base/error.hpp"
#include "tessera/train/model_weights.hpp"

namespace tessera::train {
namespace {

class Beginning {
 public:
  Beginning(const config::JobConfig& job, const model::ModelSpec& model, mesh::DeviceMesh& mesh,
            Trainer& trainer, const std::filesystem::path& checkpoints)
      : job_(job), model_(model), mesh_(mesh), trainer_(trainer), checkpoints_(checkpoints) {}

  LoadedState begin() {
    if (auto loaded = resume()) return *std::move(loaded);
    if (job_.checkpoint.initial_load_path)
      load_initial();
    else
      initialize();
    return {};
  }

 private:
  void initialize() { trainer_.stages().initialize(static_cast<std::uint64_t>(job_.debug.seed)); }

  std::optional<LoadedState> resume() {
    const LoadChoice choice = LoadChoice::of_own(job_.checkpoint, model_);
    if (!job_.checkpoint.enable) return std::nullopt;
    if (choice.step < 0)
      if (const auto last = open_model_only(mesh_.control(), checkpoints_))
        return state_at_end(*last);
    if (choice.is_partial()) initialize();
    return load_state(trainer_, checkpoints_, choice);
  }

  /// After a last checkpoint with the model alone there is nothing to go on with.
  LoadedState state_at_end(const checkpoint::Opened& last) {
    require(last.step() >= job_.training.steps, ExitCode::usage,
            "{} holds the model alone (checkpoint.last_save_model_only), so that training.steps = "
            "{} cannot follow its "
            "step {}; resume from an older checkpoint by checkpoint.load_step, or choose another "
            "job.dump_folder and "
            "start from this model by checkpoint.initial_load_path",
            last.folder().string(), job_.training.steps, last.step());
    load_model(trainer_.stages().holdings(), model_, mesh_, last.folder());
    TrainState state;
    state.step = last.step();
    state.samples = trainer_.first_sample(state.step);
    trainer_.set_state(state);
    return {state, {}, {}};
  }

  void load_initial() {
    const LoadChoice choice = LoadChoice::of(job_.checkpoint, model_);
    if (choice.is_partial()) initialize();
    load_weights_of(job_, trainer_.stages().holdings(), model_, mesh_, choice);
  }

  const config::JobConfig& job_;
  const model::ModelSpec& model_;
  mesh::DeviceMesh& mesh_;
  Trainer& trainer_;
  const std::filesystem::path& checkpoints_;
};

}  // namespace

LoadedState begin_state(const config::JobConfig& job, const model::ModelSpec& model,
                        mesh::DeviceMesh& mesh, Trainer& trainer,
                        const std::filesystem::path& checkpoints) {
  return Beginning(job, model, mesh, trainer, checkpoints).begin();
}

}  // namespace tessera::train
