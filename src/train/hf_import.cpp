// SPDX-License-Identifier: Apache-2.0
// Safetensors -> checkpoint, a box at a time.
#include "tessera/train/hf_import.hpp"

#include <cstring>
#include <map>
#include <set>
#include <variant>

#include "hf_layout.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/log.hpp"
#include "tessera/checkpoint/stream.hpp"
#include "tessera/parallel/tensor_buffer.hpp"
#include "tessera/train/setup.hpp"

namespace tessera::train {
namespace {

namespace fs = std::filesystem;
using checkpoint::SafetensorsEntry;

constexpr const char* kGroup = "model/";

/// Where the values of a tensor of the checkpoint come from.
using Origin = std::variant<const model::ParamSpec*, const model::BufferSpec*>;

class Import {
 public:
  Import(const fs::path& weights, const config::JobConfig& job, std::optional<DType> dtype)
      : path_(weights.string()), reader_(weights), dtype_(dtype) {
    titan_ = reader_.find(model::kTokenEmbedding) != nullptr;
    const SafetensorsEntry* embedding =
        titan_ ? reader_.find(model::kTokenEmbedding) : reader_.find("model.embed_tokens.weight");
    const bool has_rows = embedding != nullptr && embedding->shape.size() == 2;
    const model::DecoderShape shape = decoder_shape_of(job, has_rows ? embedding->shape[0] : 0);
    require(!titan_ || shape.family == model::Family::llama, ExitCode::data,
            "{} has TorchTitan's names, which are supported for Llama only, because other families "
            "order their rows "
            "differently; convert the checkpoint with TorchTitan's "
            "scripts/checkpoint_conversion/convert_to_hf.py first",
            path_);
    model_ = model::spec_of(shape);
    for (const model::ParamSpec& spec : model_.params) add(spec);
    for (const model::BufferSpec& buffer : model_.buffers) add(buffer);
    warn_of_unused();
  }

  const std::vector<checkpoint::TensorInfo>& tensors() const { return tensors_; }

  void read(const TensorSlice& box, void* values) const {
    const Origin& origin = origins_.at(box.name);
    if (const auto* buffer = std::get_if<const model::BufferSpec*>(&origin))
      return read(**buffer, box, values);
    const model::ParamSpec& spec = *std::get<const model::ParamSpec*>(origin);
    if (titan_) return reader_.read(renamed(box, spec.fqn), values);
    const at::Tensor out = at::from_blob(values, box.extent, parallel::scalar_type_of(box.dtype));
    read_hf_box(reader_, spec, box, out, path_);
  }

 private:
  static TensorSlice renamed(TensorSlice box, const std::string& name) {
    box.name = name;
    return box;
  }

  void read(const model::BufferSpec& buffer, const TensorSlice& box, void* values) const {
    const std::string& name = titan_ ? buffer.fqn : buffer.hf_name;
    if (reader_.find(name) != nullptr) return reader_.read(renamed(box, name), values);
    std::memset(values, 0,
                static_cast<std::size_t>(element_count(box.extent)) * size_of(box.dtype));
  }

  void add(const model::ParamSpec& spec) {
    const std::string misfit =
        titan_ ? hf_misfit(reader_, spec.fqn, spec.global_shape) : hf_misfit(reader_, spec);
    require(misfit.empty(), ExitCode::data,
            "{}: {} (for {}); are these the weights of another model?", path_, misfit, spec.fqn);
    const SafetensorsEntry* entry =
        titan_ ? reader_.find(spec.fqn) : hf_entry(reader_, hf_tensor_name(spec, 0));
    require(size_of(entry->dtype) > 1 && is_floating(entry->dtype), ExitCode::data,
            "{}: {} is stored as {} without known scales; supported are float32, bfloat16, "
            "float16, float64, FP8 in "
            "blocks of 128 x 128 and MXFP4",
            path_, entry->name, name_of(entry->dtype));
    tensors_.push_back({kGroup + spec.fqn, dtype_.value_or(entry->dtype), spec.global_shape});
    origins_.emplace(tensors_.back().name, &spec);
    use(spec, entry->name);
  }

  /// What balances experts; zero where the files have none.
  void add(const model::BufferSpec& buffer) {
    const std::string& name = titan_ ? buffer.fqn : buffer.hf_name;
    if (const SafetensorsEntry* entry = name.empty() ? nullptr : reader_.find(name))
      require(entry->shape == buffer.shape, ExitCode::data,
              "{}: {} differs in shape from the model's {}", path_, name, buffer.fqn);
    tensors_.push_back({kGroup + buffer.fqn, DType::f32, buffer.shape});
    origins_.emplace(tensors_.back().name, &buffer);
    used_.insert(name);
  }

  static bool is_floating(DType dtype) {
    return dtype == DType::f32 || dtype == DType::bf16 || dtype == DType::f16 ||
           dtype == DType::f64;
  }

  void use(const model::ParamSpec& spec, const std::string& entry) {
    use(entry);
    if (!titan_ && spec.hf_layout == model::HfLayout::each_expert)
      for (std::int64_t e = 0; e < spec.global_shape[0]; ++e) use(hf_tensor_name(spec, e));
  }

  void use(const std::string& name) {
    for (const std::string& stored : reader_.stored_names(name)) used_.insert(stored);
  }

  void warn_of_unused() const {
    std::size_t unused = 0;
    std::string first;
    for (const SafetensorsEntry& entry : reader_.stored())
      if (!used_.contains(entry.name) && unused++ == 0) first = entry.name;
    if (unused > 0)
      log::warning("{}: {} tensors are not part of {} and are skipped; the first is {}", path_,
                   unused, model_.name, first);
  }

  std::string path_;
  HfSource reader_;
  std::optional<DType> dtype_;
  bool titan_ = false;  ///< names and layouts are TorchTitan's, that is ours
  model::ModelSpec model_;
  std::vector<checkpoint::TensorInfo> tensors_;
  std::map<std::string, Origin> origins_;
  std::set<std::string> used_;
};

fs::path config_beside(const fs::path& weights) {
  return (fs::is_directory(weights) ? weights : fs::absolute(weights).parent_path()) /
         "config.json";
}

config::Resolved job_by(const fs::path& config) {
  return config::resolve({"--model.hf_config", config.string()});
}

/// The job that describes the model: the one that was given, or that of a config.json.
config::Resolved job_of(const fs::path& weights, const ImportOptions& options) {
  if (!options.config.empty()) return config::resolve(options.config);
  const fs::path config = config_beside(weights);
  require(fs::exists(config), ExitCode::data,
          "{} is not there: name a job with --config whose model.name and flavor, or "
          "model.hf_config, are those of the "
          "weights",
          config.string());
  return job_by(config);
}

/// The same with a config.json that stays beside the checkpoint.
config::Resolved job_to_keep(const fs::path& weights, const ImportOptions& options) {
  if (!options.config.empty()) return config::resolve(options.config);
  const fs::path config = config_beside(weights),
                 kept = fs::absolute(options.folder) / "config.json";
  fs::create_directories(kept.parent_path());
  if (!fs::exists(kept) || !fs::equivalent(config, kept))
    fs::copy_file(config, kept, fs::copy_options::overwrite_existing);
  return job_by(kept);
}

}  // namespace

bool holds_hf_weights(const fs::path& folder) {
  std::error_code problem;
  return fs::exists(folder / "config.json", problem) &&
         (fs::exists(folder / "model.safetensors", problem) ||
          fs::exists(folder / "model.safetensors.index.json", problem));
}

fs::path import_weights(const fs::path& weights, const ImportOptions& options) {
  require(fs::exists(weights), ExitCode::data, "there is no file or folder '{}'; check the path",
          weights.string());
  // Before a config.json is put beside a checkpoint that was made with another one.
  require(!fs::exists(options.folder / "step-00000000"), ExitCode::usage,
          "{} exists; choose another folder or remove it first",
          (options.folder / "step-00000000").string());
  const Import import(weights, job_of(weights, options).job, options.dtype);
  const config::Resolved job = job_to_keep(weights, options);
  return checkpoint::write_streamed(
      {options.folder, options.files}, {0, "", job.to_toml(), "{}", import.tensors()},
      [&](const TensorSlice& box, void* values) { import.read(box, values); });
}

}  // namespace tessera::train
