// Model weights alone, out of a checkpoint.
#pragma once

#include <filesystem>

#include "tessera/mesh/device_mesh.hpp"
#include "tessera/parallel/stage.hpp"
#include "tessera/train/load_choice.hpp"

namespace tessera::train {

/// Collective over the mesh. Fills this rank's masters and buffers from a step folder, or from the newest valid
/// checkpoint in a checkpoint folder; what `choice` leaves out stays as it is. Throws Error(checkpoint) when there is
/// none or it is damaged, Error(usage) when it is of another model.
void load_model(const parallel::Holdings& holdings, const model::Model& model, mesh::DeviceMesh& mesh,
                const std::filesystem::path& folder, LoadChoice choice = {});

}  // namespace tessera::train
