// Checkpoint -> Hugging Face folder.
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tessera/base/error.hpp"
#include "tessera/checkpoint/export.hpp"
#include "tessera/train/hf_weights.hpp"
#include "tessera/train/inference.hpp"
#include "tessera/train/setup.hpp"

namespace tessera::train {
namespace {

namespace fs = std::filesystem;

checkpoint::Opened open_at(comm::Communicator& control, const fs::path& folder) {
  if (folder.filename().string().starts_with("step-")) return checkpoint::open(control, folder);
  auto opened = checkpoint::open_newest(control, folder, {});
  require(opened.has_value(), ExitCode::checkpoint, "{} holds no checkpoint", folder.string());
  return std::move(*opened);
}

/// The job that made the checkpoint, from the configuration that it carries.
config::Resolved job_inside(const checkpoint::Opened& opened) {
  const fs::path file = fs::temp_directory_path() / fmt::format("tessera-{}-{}.toml", getpid(), opened.uuid());
  std::ofstream(file) << opened.config_toml();
  try {
    config::Resolved resolved = config::resolve({file.string()});
    fs::remove(file);
    return resolved;
  } catch (...) {
    fs::remove(file);
    throw;
  }
}

void write_json(const fs::path& file, const nlohmann::ordered_json& json) {
  std::ofstream out(file);
  out << json.dump(2) << "\n";
  require(out.good(), ExitCode::environment, "cannot write {}", file.string());
}

}  // namespace

void export_hf(const fs::path& folder, const fs::path& out, DType dtype) {
  const auto control = comm::make_self_communicator("export");
  const checkpoint::Opened opened = open_at(*control, folder);
  const config::Resolved resolved = job_inside(opened);
  const model::LlamaShape shape = llama_shape_of(resolved.job, opened.find("model/tok_embeddings.weight")->shape[0]);
  const model::Model model = model::make_llama(shape, 1, torch::kFloat32);
  const auto map = hf_export_map(model, dtype);
  fs::create_directories(out);
  checkpoint::SafetensorsWriter writer(out / "model.safetensors", checkpoint::export_entries(opened, map));
  checkpoint::export_tensors(opened, map, writer);
  writer.finish();
  write_json(out / "config.json", nlohmann::ordered_json::parse(model::hf_config_of(shape, std::string(name_of(dtype)))));
}

}  // namespace tessera::train
