// Model weights alone, out of a checkpoint.
#pragma once

#include <filesystem>

#include "tessera/comm/communicator.hpp"
#include "tessera/parallel/stage.hpp"

namespace tessera::train {

/// Collective over `control`. Fills the masters of this rank's parameters from a step folder, or from the newest valid
/// checkpoint in a checkpoint folder. Throws Error(checkpoint) when there is none, it is damaged, or it is of another
/// model.
void load_model(const parallel::ParamRefs& params, comm::Communicator& control, const std::filesystem::path& folder);

}  // namespace tessera::train
