// SPDX-License-Identifier: Apache-2.0
#include "tessera/hf/folder.hpp"

#include <string>
#include <string_view>

#include "json_file.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/file.hpp"
#include "tessera/hf/config.hpp"

namespace tessera::hf {
namespace {

namespace fs = std::filesystem;

constexpr const char* kConfig = "config.json";
constexpr const char* kWeights = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";

}  // namespace

bool holds_weights(const fs::path& folder) {
  std::error_code problem;
  return fs::exists(folder / kConfig, problem) &&
         (fs::exists(folder / kWeights, problem) || fs::exists(folder / kIndex, problem));
}

void prepare_folder(const fs::path& folder, const Assets& assets, bool replace) {
  require(!fs::exists(folder / kIndex), ExitCode::usage,
          "'{}' has weights in several files ({}); name another folder", folder.string(), kIndex);
  for (const char* name : {kWeights, kConfig})
    require(replace || !fs::exists(folder / name), ExitCode::usage,
            "'{}' already has {}; name another folder, or replace it with --force", folder.string(),
            name);
  if (!replace) refuse_another(assets, folder);
  make_folders(folder, ExitCode::environment);
}

fs::path config_beside(const fs::path& weights) {
  std::error_code ignored;
  return (fs::is_directory(weights, ignored) ? weights : weights.parent_path()) / kConfig;
}

std::string described_differences(const model::Properties& now, const fs::path& weights) {
  const fs::path config = config_beside(weights);
  if (std::error_code ignored; !fs::exists(config, ignored)) return "";
  try {
    return model::differences(now, model::properties_of(read_config(config)));
  } catch (const Error&) {
    return "";
  }
}

fs::path weights_in(const fs::path& folder) { return folder / kWeights; }

void write_texts(const fs::path& folder, const model::DecoderShape& shape, DType dtype,
                 const Assets& assets) {
  auto config = parse_ordered_json(config_text(shape, dtype));
  config["bos_token_id"] = id_json(assets.bos);
  config["eos_token_id"] = id_json(assets.eos);
  write_assets(assets, folder);
  write_json_file(folder / kConfig, config);  // last: with it, the folder is whole
}

}  // namespace tessera::hf
