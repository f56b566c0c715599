#include "tessera/train/training_state.hpp"

#include <nlohmann/json.hpp>

#include "host_views.hpp"
#include "tessera/base/error.hpp"

namespace tessera::train {
namespace {

using nlohmann::json;

HostViews all_views(Trainer& trainer) {
  HostViews views = model_views(trainer.stages().holdings(), trainer.model(), trainer.mesh());
  const auto params = trainer.stages().trained_params();
  for (std::size_t i = 0; i < params.size(); ++i) {
    views.add("optimizer/exp_avg/", params[i], trainer.optimizer_states()[i].exp_avg);
    views.add("optimizer/exp_avg_sq/", params[i], trainer.optimizer_states()[i].exp_avg_sq);
  }
  return views;
}

checkpoint::SaveOptions save_options(Trainer& trainer, const config::Resolved& resolved,
                                     const std::filesystem::path& folder) {
  checkpoint::SaveOptions options;
  options.folder = folder;
  options.coord_name = trainer.mesh().layout().coord_name(trainer.mesh().rank());
  options.mesh = trainer.mesh().layout().to_string();
  options.config_toml = resolved.to_toml();
  options.files = checkpoint::file_layout_from_name(resolved.job.checkpoint.files);
  options.keep_latest_k = static_cast<int>(resolved.job.checkpoint.keep_latest_k);
  options.keep_every = resolved.job.checkpoint.keep_every;
  return options;
}

checkpoint::State state_of(Trainer& trainer, const config::Resolved& resolved, const Position& position) {
  const json state = {{"step", position.step},
                      {"samples", position.samples},
                      {"optimizer_steps", trainer.optimizer().steps()},
                      {"skipped_steps", trainer.skipped_steps()},
                      {"schedule_start", trainer.schedule_start()},
                      {"seed", resolved.job.debug.seed}};
  return {position.step, state.dump()};
}

Position take_state(Trainer& trainer, const checkpoint::Opened& opened, const LoadChoice& choice) {
  const json state = json::parse(opened.extra(), nullptr, /*allow_exceptions=*/false);
  const auto number = [&](const char* key) -> std::int64_t {
    require(state.is_object() && state.contains(key) && state[key].is_number_integer(), ExitCode::checkpoint,
            "{} lacks \"{}\" in its training state: it holds a model only; use checkpoint.initial_load_path to start "
            "from it",
            opened.folder().string(), key);
    return state[key].get<std::int64_t>();
  };
  trainer.optimizer().set_steps(choice.optimizer ? number("optimizer_steps") : 0);
  trainer.set_skipped_steps(number("skipped_steps"));
  const Position position{number("step"), choice.data ? number("samples") : 0};
  const bool has_start = state.contains("schedule_start");  // a state without it began its schedule at step 0
  trainer.set_schedule_start(!choice.schedule ? position.step : has_start ? number("schedule_start") : 0);
  trainer.set_first_sample(position.step, position.samples);
  return position;
}

}  // namespace

checkpoint::SaveResult save_state(checkpoint::Saver& saver, Trainer& trainer, const config::Resolved& resolved,
                                  const std::filesystem::path& folder, const Position& position) {
  const HostViews views = all_views(trainer);
  return saver.save(save_options(trainer, resolved, folder), state_of(trainer, resolved, position), views.views());
}

void begin_save_state(checkpoint::Saver& saver, Trainer& trainer, const config::Resolved& resolved,
                      const std::filesystem::path& folder, const Position& position) {
  const HostViews views = all_views(trainer);
  saver.begin(save_options(trainer, resolved, folder), state_of(trainer, resolved, position), views.views());
}

std::optional<Position> load_state(Trainer& trainer, const std::filesystem::path& folder, std::int64_t step,
                                   const LoadChoice& choice) {
  comm::Communicator& control = trainer.mesh().control();
  HostViews views = all_views(trainer);
  const checkpoint::LoadOptions options = choice.options(trainer.model());
  std::optional<checkpoint::Opened> opened;
  if (step >= 0) {
    opened = checkpoint::open(control, folder / fmt::format("step-{:08d}", step));
    opened->load(control, views.views(), options);
  } else {
    opened = checkpoint::load_newest(control, folder, views.views(), options);
  }
  if (!opened) return std::nullopt;
  views.write_back();
  return take_state(trainer, *opened, choice);
}

}  // namespace tessera::train
