// SPDX-License-Identifier: Apache-2.0
#include "tessera/inputs/found_weights.hpp"

#include <fmt/format.h>

#include "tessera/base/error.hpp"
#include "tessera/checkpoint/inspect.hpp"
#include "tessera/hf/folder.hpp"
#include "tessera/hf/safetensors.hpp"

namespace tessera::inputs {

namespace fs = std::filesystem;

std::string held_instead(const fs::path& folder, std::string_view for_weights) {
  std::error_code ignored;
  if (fs::exists(folder / "config.toml", ignored))
    return " but is the folder of a run; name the folder of its checkpoints, or one of them";
  const bool is_file = folder.extension() == ".safetensors";
  return is_file || hf::holds_weights(folder)
             ? fmt::format(" but Hugging Face weights{}", for_weights)
             : std::string();
}

std::string_view remedy_for_weights(bool branch) {
  return branch ? ", which have no training state; start from them with "
                  "checkpoint.initial_load_in_hf and "
                  "checkpoint.initial_load_model_only = true"
                : "; add --checkpoint.initial_load_in_hf";
}

void require_weights(const plan::InitialState& from) {
  std::error_code ignored;
  require(fs::exists(from.path, ignored), ExitCode::checkpoint,
          "there is no file or folder '{}' to take weights from; check the path",
          from.path.string());
  if (from.in_hf) {
    const hf::SafetensorsReader headers(from.path);
    return;
  }
  const bool holds_steps =
      fs::is_directory(from.path, ignored) &&
      (checkpoint::is_step_folder(from.path) || !checkpoint::list_steps(from.path).empty());
  require(holds_steps, ExitCode::checkpoint, "{} holds no checkpoint of Tessera{}",
          from.path.string(), held_instead(from.path, remedy_for_weights(from.branch)));
}

}  // namespace tessera::inputs
