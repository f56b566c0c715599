// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/training_state.hpp"

#include <nlohmann/json.hpp>

#include "attention_change.hpp"
#include "load_options.hpp"
#include "recorded_model.hpp"
#include "schedule_change.hpp"
#include "tensor_views.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/json.hpp"
#include "tessera/checkpoint/inspect.hpp"
#include "tessera/config/recorded.hpp"
#include "tessera/data/tokenizer_record.hpp"
#include "tessera/parallel/tensor_buffer.hpp"

namespace tessera::train {
namespace {

using nlohmann::json;

TensorViews all_views(ViewUse use, Trainer& trainer) {
  TensorViews views =
      model_views(use, trainer.stages().holdings(), trainer.model(), trainer.mesh());
  const auto params = trainer.stages().trained_params();
  for (std::size_t i = 0; i < params.size(); ++i) {
    views.add("optimizer/exp_avg/", *params[i], trainer.optimizer_states()[i].exp_avg);
    views.add("optimizer/exp_avg_sq/", *params[i], trainer.optimizer_states()[i].exp_avg_sq);
  }
  return views;
}

checkpoint::FileLayout layout_of(plan::ShardFiles files) {
  using checkpoint::FileLayout;
  return files == plan::ShardFiles::single         ? FileLayout::single
         : files == plan::ShardFiles::one_per_node ? FileLayout::node
                                                   : FileLayout::rank;
}

checkpoint::SaveOptions save_options(Trainer& trainer, const plan::JobPlan& plan,
                                     const std::filesystem::path& folder) {
  checkpoint::SaveOptions options;
  options.folder = folder;
  options.coord_name = trainer.mesh().layout().coord_name(trainer.mesh().rank());
  options.mesh = trainer.mesh().layout().to_string();
  options.config_toml = plan.run.absolute_toml;
  options.files = layout_of(plan.save.files);
  options.keep_latest_k = plan.save.keep_latest_k;
  options.keep_every = plan.save.keep_every;
  return options;
}

std::string tokenizer_of(const Trainer& trainer) {
  return data::tokenizer_record(trainer.source().tokenizer_hash());
}

checkpoint::State state_of(Trainer& trainer, const plan::JobPlan& plan, const TrainState& state) {
  const plan::LoadChoice& choice = plan.load.own;
  const json stored = {{"step", state.step},
                       {"samples", state.samples},
                       {"optimizer_steps", state.optimizer_steps},
                       {"skipped_steps", state.skipped_steps},
                       {"schedule_start", state.schedule_start},
                       {"seed", plan.run.seed},
                       {model::kPropertiesKey, trainer.model().properties},
                       {"data", trainer.source().identity()},
                       {data::kTokenizerKey, tokenizer_of(trainer)},
                       {"load_step", choice.step},
                       {"left_out", choice.left_out()}};
  return {state.step, json_text(stored)};
}

json state_in(const checkpoint::CheckpointReader& opened) { return parse_json(opened.extra()); }

/// "" in a state that lacks it, as one of an earlier release may.
std::string text_of(const json& state, const char* key) {
  return state.is_object() && state.contains(key) && state[key].is_string()
             ? state[key].get<std::string>()
             : "";
}

/// Written by a run that left the same out when it began, and so has values of its own for it: to
/// be taken whole.
bool is_own(const Trainer& trainer, const checkpoint::CheckpointReader& opened,
            const plan::LoadChoice& choice) {
  const json state = state_in(opened);
  const bool same_data = choice.data || text_of(state, "data") == trainer.source().identity();
  return choice.saves && same_data && text_of(state, "left_out") == choice.left_out();
}

/// Written by a run that began with the same checkpoint.load_step.
bool is_of_this_course(const checkpoint::CheckpointReader& opened, const plan::LoadChoice& choice) {
  const json state = state_in(opened);
  return state.is_object() && state.value("load_step", json()) == choice.step;
}

/// Before any tensor is loaded: a model alone has no step to continue from.
void require_training_state(const checkpoint::CheckpointReader& opened) {
  const json state = state_in(opened);
  require(state.is_object() && state.contains("skipped_steps"), ExitCode::usage,
          "{} holds only a model, so that no run can continue from it; start from its weights with "
          "checkpoint.initial_load_model_only = true",
          opened.folder().string());
}

/// A position counts in the data that it was saved with.
void require_same_data(const Trainer& trainer, const checkpoint::CheckpointReader& opened,
                       const json& state, bool own) {
  const std::string then = text_of(state, "data"), now = trainer.source().identity();
  if (then.empty() || now.empty() || then == now) return;
  const std::string what =
      config::differences(opened.config_toml(), trainer.plan().run.absolute_toml,
                          {"training.seq_len", "training.dataset", "training.dataset_path",
                           "training.mixture", "validation.split", "debug.seed"});
  fail(ExitCode::usage,
       "{} was trained on other data than this job has, or in another order ({}). Restore the "
       "data, {}or start this data from its beginning with checkpoint.exclude_from_loading = "
       "[\"dataloader\"]",
       opened.folder().string(), what.empty() ? "the content of its files" : what,
       own ? "choose another job.dump_folder, " : "");
}

LoadedState take_state(Trainer& trainer, const checkpoint::CheckpointReader& opened,
                       const plan::LoadChoice& choice, bool own) {
  const json stored = state_in(opened);
  const auto number = [&](const char* key) -> std::int64_t {
    require(stored.is_object() && stored.contains(key) && stored[key].is_number_integer(),
            ExitCode::checkpoint,
            "{} lacks \"{}\" in its training state: it has only the model; start from it with "
            "checkpoint.initial_load_path and checkpoint.initial_load_model_only = true",
            opened.folder().string(), key);
    const auto count = whole_number(stored[key], 0, std::int64_t{1} << 62);
    require(count.has_value(), ExitCode::checkpoint, "{} is damaged (\"{}\" is {})",
            opened.folder().string(), key, json_text(stored[key]));
    return *count;
  };
  if (choice.data) require_same_data(trainer, opened, stored, own);
  TrainState state;
  state.optimizer_steps = choice.optimizer ? number("optimizer_steps") : 0;
  state.skipped_steps = number("skipped_steps");
  state.step = number("step");
  if (choice.data) state.samples = number("samples");
  // a state without it began its schedule at step 0
  const bool has_start = stored.contains("schedule_start");
  state.schedule_start = !choice.schedule ? state.step : has_start ? number("schedule_start") : 0;
  require(state.schedule_start <= state.step, ExitCode::checkpoint,
          "{} is damaged (its schedule starts at step {}, and it is of step {})",
          opened.folder().string(), state.schedule_start, state.step);
  trainer.set_state(state);
  LoadedState loaded{state, choice.left_out(), {}, opened.folder(), own};
  if (choice.schedule)
    loaded.schedule_change =
        schedule_change(trainer.plan().optimizer, trainer.plan().run.steps, opened.config_toml(),
                        state.step, state.schedule_start);
  loaded.attention_change = attention_change(trainer.plan().model.shape,
                                             trainer.plan().data.seq_len, opened.config_toml());
  return loaded;
}

/// The step to load, of a run that is to start from choice.step: that one, or the newest (-1) if it
/// has started so before and saved since.
std::int64_t step_to_load(comm::Communicator& control, const std::filesystem::path& folder,
                          const plan::LoadChoice& choice, std::int64_t latest_step,
                          const checkpoint::LogLine& log) {
  if (choice.step < 0 || !choice.saves) return choice.step;
  const auto newest = checkpoint::open_newest(control, folder, log, latest_step);
  if (!newest || newest->step() <= choice.step) return choice.step;
  require(is_of_this_course(*newest, choice), ExitCode::usage,
          "{} is newer than checkpoint.load_step = {}, and this run would mix its checkpoints with "
          "those after step "
          "{}. Move those away, or choose another job.dump_folder and start from step {} with "
          "checkpoint.initial_load_path",
          newest->folder().string(), choice.step, choice.step, choice.step);
  return -1;
}

}  // namespace

checkpoint::SaveResult save_state(checkpoint::Saver& saver, Trainer& trainer,
                                  const plan::JobPlan& plan, const std::filesystem::path& folder,
                                  const TrainState& state) {
  const TensorViews views = all_views(ViewUse::saving, trainer);
  return saver.save(save_options(trainer, plan, folder), state_of(trainer, plan, state),
                    views.views());
}

void begin_save_state(checkpoint::Saver& saver, Trainer& trainer, const plan::JobPlan& plan,
                      const std::filesystem::path& folder, const TrainState& state) {
  const TensorViews views = all_views(ViewUse::saving, trainer);
  saver.begin(save_options(trainer, plan, folder), state_of(trainer, plan, state), views.views());
}

checkpoint::SaveResult save_model_only(checkpoint::Saver& saver, Trainer& trainer,
                                       const plan::JobPlan& plan,
                                       const std::filesystem::path& folder, std::int64_t step) {
  // The export takes weights in its type, for which there may be no other memory.
  for (parallel::ShardGroup* group : trainer.stages().groups()) group->kept_copy().free();
  const at::ScalarType type = parallel::scalar_type_of(plan.save.export_dtype);
  const TensorViews views = model_views(ViewUse::saving, trainer.stages().holdings(),
                                        trainer.model(), trainer.mesh(), type);
  const json state = {{"step", step},
                      {"model_only", true},
                      {model::kPropertiesKey, trainer.model().properties},
                      {data::kTokenizerKey, tokenizer_of(trainer)}};
  return saver.save(save_options(trainer, plan, folder), {step, json_text(state)}, views.views());
}

std::optional<checkpoint::CheckpointReader> open_model_only(comm::Communicator& control,
                                                            const std::filesystem::path& folder) {
  auto newest = checkpoint::open_newest(control, folder, {});
  if (!newest || !state_in(*newest).is_object() || !state_in(*newest).value("model_only", false))
    return std::nullopt;
  return newest;
}

std::optional<LoadedState> load_state(Trainer& trainer, const std::filesystem::path& folder,
                                      const plan::LoadChoice& choice, std::int64_t latest_step) {
  comm::Communicator& control = trainer.mesh().control();
  TensorViews views = all_views(ViewUse::loading, trainer);
  bool whole = false;
  checkpoint::LoadOptions options = load_options(choice, trainer.model());
  const auto look_at = [&](const checkpoint::CheckpointReader& candidate) {
    whole = is_own(trainer, candidate, choice);
  };
  options.leave_out = [&, leave_out = options.leave_out](std::string_view name) {
    return !whole && leave_out(name);
  };
  const checkpoint::NewestOptions which{latest_step, look_at};
  const std::int64_t step = step_to_load(control, folder, choice, latest_step, options.log);
  const auto opened = step < 0
                          ? checkpoint::load_newest(control, folder, views.views(), options, which)
                          : checkpoint::load_named(control, folder / checkpoint::step_name(step),
                                                   views.views(), options, which);
  if (!opened) return std::nullopt;
  views.write_back();
  if (trainer.mesh().rank() == mesh::Rank(0))
    warn_of_other_tokenizer(opened->folder().string(), opened->extra(),
                            trainer.source().tokenizer_hash());
  return take_state(trainer, *opened, whole ? plan::LoadChoice() : choice, true);
}

std::optional<LoadedState> load_branch(Trainer& trainer, std::int64_t latest_step) {
  const plan::LoadPlan& plan = trainer.plan().load;
  TensorViews views = all_views(ViewUse::loading, trainer);
  const auto opened = checkpoint::load_named(
      trainer.mesh().control(), plan.from->path, views.views(),
      load_options(plan.initial, trainer.model()), {latest_step, require_training_state});
  if (!opened) return std::nullopt;
  views.write_back();
  if (trainer.mesh().rank() == mesh::Rank(0)) {
    const std::string where = opened->folder().string();
    warn_of_other_model(where, model_differences(trainer.model(), opened->extra()));
    warn_of_other_tokenizer(where, opened->extra(), trainer.source().tokenizer_hash());
  }
  return take_state(trainer, *opened, plan.initial, false);
}

}  // namespace tessera::train
