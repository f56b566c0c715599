// SPDX-License-Identifier: Apache-2.0
// Checkpoint -> Hugging Face folder.
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "hf_assets.hpp"
#include "hf_json.hpp"
#include "hf_layout.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/json.hpp"
#include "tessera/base/log.hpp"
#include "tessera/checkpoint/export.hpp"
#include "tessera/parallel/tensor_buffer.hpp"
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
  const fs::path file =
      fs::temp_directory_path() / fmt::format("tessera-{}-{}.toml", getpid(), opened.uuid());
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

/// Makes the folder, or refuses one in which weights would be replaced, or read beside ours.
void prepare_folder(const fs::path& folder, bool replace) {
  for (const char* name : {"model.safetensors.index.json", "model.safetensors", "config.json"})
    if (fs::exists(folder / name)) {
      const bool ours = std::string_view(name) != "model.safetensors.index.json";
      require(ours, ExitCode::usage, "'{}' has weights in several files ({}); name another folder",
              folder.string(), name);
      require(replace, ExitCode::usage,
              "'{}' already has {}; name another folder, or replace it with --force",
              folder.string(), name);
    }
  std::error_code problem;
  fs::create_directories(folder, problem);
  require(!problem, ExitCode::environment, "cannot make the folder '{}' ({}); name another",
          folder.string(), problem.message());
}

bool streamed(const model::ParamSpec& spec) { return spec.hf_layout == model::HfLayout::same; }

/// What checkpoint::export_tensors can do: whole tensors, their rows permuted where RoPE asks for
/// it.
std::vector<checkpoint::ExportTensor> streamed_tensors(const model::ModelSpec& model, DType dtype) {
  std::vector<checkpoint::ExportTensor> map;
  for (const model::ParamSpec& spec : model.params) {
    if (!streamed(spec)) continue;
    checkpoint::ExportTensor tensor{"model/" + spec.fqn, spec.hf_name, dtype, {}};
    if (spec.rope_heads > 0)
      tensor.row_map = [head_dim = head_dim_of(spec)](std::int64_t row) {
        return hf_row(row, head_dim);
      };
    map.push_back(std::move(tensor));
  }
  for (const model::BufferSpec& buffer : model.buffers)
    if (!buffer.hf_name.empty())
      map.push_back({"model/" + buffer.fqn, buffer.hf_name, DType::f32, {}});
  return map;
}

/// The tensors of experts: each once, though two parameters may lie in it.
std::vector<checkpoint::SafetensorsEntry> expert_entries(const model::ModelSpec& model,
                                                         DType dtype) {
  std::vector<checkpoint::SafetensorsEntry> entries;
  for (const model::ParamSpec& spec : model.params) {
    using enum model::HfLayout;
    if (streamed(spec) || spec.hf_layout == odd || spec.hf_layout == odd_transposed) continue;
    const std::int64_t tensors = spec.hf_layout == each_expert ? spec.global_shape[0] : 1;
    for (std::int64_t e = 0; e < tensors; ++e)
      entries.push_back({hf_tensor_name(spec, e), dtype, hf_tensor_shape(spec)});
  }
  return entries;
}

/// One expert's part of a parameter.
at::Tensor read_expert(const checkpoint::Opened& checkpoint, const model::ParamSpec& spec,
                       std::int64_t expert, DType dtype) {
  TensorSlice box{"model/" + spec.fqn, dtype, spec.global_shape, Shape(spec.global_shape.size(), 0),
                  spec.global_shape};
  box.offset[0] = expert;
  box.extent[0] = 1;
  const at::Tensor values = at::empty(box.extent, parallel::scalar_type_of(dtype));
  checkpoint.read(box, values.data_ptr());
  return values[0];
}

/// The parameter that fills the odd columns where `spec` fills the even ones.
const model::ParamSpec& odd_twin(const model::ModelSpec& model, const model::ParamSpec& spec) {
  for (const model::ParamSpec& other : model.params)
    if (&other != &spec && other.hf_name == spec.hf_name) return other;
  contract_violated("found", __FILE__, __LINE__, spec.fqn + " has no twin");
}

void export_expert(const checkpoint::Opened& checkpoint, const model::ModelSpec& model,
                   const model::ParamSpec& spec, std::int64_t expert, DType dtype,
                   checkpoint::SafetensorsWriter& writer) {
  using enum model::HfLayout;
  at::Tensor values = read_expert(checkpoint, spec, expert, dtype);
  if (spec.hf_layout == even || spec.hf_layout == even_transposed) {
    const at::Tensor twin = read_expert(checkpoint, odd_twin(model, spec), expert, dtype);
    values = at::stack({values, twin}, 1).flatten(0, 1);  // rows by turns
  }
  if (values.dim() == 2 && spec.hf_layout != each_expert) values = values.t();
  values = values.contiguous();
  const std::int64_t first = spec.hf_layout == each_expert ? 0 : expert * values.numel();
  writer.write(hf_tensor_name(spec, expert), first, values.numel(), values.data_ptr());
}

/// Biases of the choice that balancing made and Hugging Face's class has no place for.
void warn_of_lost_biases(const model::ModelSpec& model) {
  for (const model::BufferSpec& buffer : model.buffers)
    if (buffer.hf_name.empty()) {
      log::warning(
          "Hugging Face's files cannot store {} and similar tensors, which are not exported; "
          "without them the router "
          "may select other experts",
          buffer.fqn);
      return;
    }
}

}  // namespace

void export_hf_weights(const checkpoint::Opened& checkpoint, const model::ModelSpec& model,
                       DType dtype, const fs::path& file) {
  const auto map = streamed_tensors(model, dtype);
  std::vector<checkpoint::SafetensorsEntry> entries = checkpoint::export_entries(checkpoint, map);
  std::ranges::move(expert_entries(model, dtype), std::back_inserter(entries));
  checkpoint::SafetensorsWriter writer(file, std::move(entries));
  checkpoint::export_tensors(checkpoint, map, writer);
  for (const model::ParamSpec& spec : model.params) {
    using enum model::HfLayout;
    if (streamed(spec) || spec.hf_layout == odd || spec.hf_layout == odd_transposed) continue;
    for (std::int64_t e = 0; e < spec.global_shape[0]; ++e)
      export_expert(checkpoint, model, spec, e, dtype, writer);
  }
  writer.finish();
  warn_of_lost_biases(model);
}

Exported export_hf(const fs::path& folder, const fs::path& out, const ExportOptions& options) {
  const auto control = comm::make_self_communicator("export");
  const checkpoint::Opened opened = open_at(*control, folder);
  const config::Resolved resolved = job_inside(opened);
  const std::int64_t vocab = opened.find("model/tok_embeddings.weight")->shape[0];
  const model::DecoderShape shape = decoder_shape_of(resolved.job, vocab);
  const HfAssets assets = find_hf_assets(resolved.job, options.tokenizer, vocab);
  prepare_folder(out, options.replace);
  const fs::path weights = out / "model.safetensors";
  export_hf_weights(opened, model::spec_of(shape), options.dtype, weights);
  auto config = parse_ordered_json(model::hf_config_of(shape, std::string(name_of(options.dtype))));
  config["bos_token_id"] = id_json(assets.bos);
  config["eos_token_id"] = id_json(assets.eos);
  write_json_file(out / "config.json", config);
  write_hf_assets(assets, out);
  return {opened.step(), static_cast<std::int64_t>(fs::file_size(weights)), assets.folder,
          assets.why_not};
}

}  // namespace tessera::train
