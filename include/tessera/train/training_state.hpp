// Everything that a run needs to go on: model, optimizer, schedule position, data position, seed.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "tessera/checkpoint/saver.hpp"
#include "tessera/config/resolve.hpp"
#include "tessera/train/load_choice.hpp"
#include "tessera/train/trainer.hpp"

namespace tessera::train {

/// Steps done and where the data stands. Serialised into the checkpoint's manifest.
struct Position {
  std::int64_t step = 0;     ///< optimizer steps done
  std::int64_t samples = 0;  ///< global samples read
};

/// Collective. Writes step-%08d under `folder`; blocks until it is committed.
checkpoint::SaveResult save_state(checkpoint::Saver& saver, Trainer& trainer, const config::Resolved& resolved,
                                  const std::filesystem::path& folder, const Position& position);
/// Collective. Begins to write it; the trainer may go on as soon as this returns. See checkpoint::Saver.
void begin_save_state(checkpoint::Saver& saver, Trainer& trainer, const config::Resolved& resolved,
                      const std::filesystem::path& folder, const Position& position);

/// Collective. Loads the newest valid checkpoint under `folder` (or that of `step`, if >= 0) into the trainer, onto
/// whatever mesh it has; the next step goes on with the next sample. Empty when there is none. Throws Error(checkpoint)
/// if all are damaged, or the one asked for is not there or of a model with other tensors. What `choice` leaves out
/// stays as it is in the trainer; moments, schedule or data that it leaves out begin anew.
std::optional<Position> load_state(Trainer& trainer, const std::filesystem::path& folder, std::int64_t step,
                                   const LoadChoice& choice = {});

}  // namespace tessera::train
