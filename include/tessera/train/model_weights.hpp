// Model weights alone, out of a checkpoint.
#pragma once

#include <filesystem>

#include "tessera/mesh/device_mesh.hpp"
#include "tessera/parallel/stage.hpp"

namespace tessera::train {

/// Collective over the mesh. Fills this rank's masters and buffers from a step folder, or from the newest valid
/// checkpoint in a checkpoint folder. Throws Error(checkpoint) when there is none, it is damaged, or it is of another
/// model.
void load_model(const parallel::Holdings& holdings, const model::Model& model, mesh::DeviceMesh& mesh,
                const std::filesystem::path& folder);

}  // namespace tessera::train
