// SPDX-License-Identifier: Apache-2.0
#include "tessera/hf/import.hpp"

#include <cstring>
#include <nlohmann/json.hpp>

#include "tessera/base/error.hpp"
#include "tessera/base/json.hpp"

namespace tessera::hf {
namespace {

bool is_floating(DType dtype) {
  return dtype == DType::f32 || dtype == DType::bf16 || dtype == DType::f16 || dtype == DType::f64;
}

/// The parameter as the checkpoint will have it.
TensorInfo described(const ModelWeights& weights, const std::filesystem::path& path,
                     const model::ParamSpec& param, std::optional<DType> dtype) {
  TensorInfo tensor{"model/" + param.fqn, DType::f32, param.global_shape};
  if (const TensorInfo* stored = weights.find(tensor.name)) tensor.dtype = stored->dtype;
  const std::string misfit = weights.misfit(tensor);
  require(misfit.empty(), ExitCode::data,
          "{}: {} (for {}); are these the weights of another model?", path.string(), misfit,
          param.fqn);
  require(is_floating(tensor.dtype), ExitCode::data,
          "{}: {} is stored as {} without known scales; supported are float32, bfloat16, "
          "float16, float64, FP8 in blocks of 128 x 128 and MXFP4",
          path.string(), param.fqn, name_of(tensor.dtype));
  tensor.dtype = dtype.value_or(tensor.dtype);
  return tensor;
}

/// What balances experts; zero where Hugging Face's files of such models have none.
TensorInfo described(const ModelWeights& weights, const std::filesystem::path& path,
                     const model::BufferSpec& buffer) {
  const TensorInfo tensor{"model/" + buffer.fqn, DType::f32, buffer.shape};
  const bool may_lack = buffer.hf_name.empty() && !weights.find(tensor.name);
  require(may_lack || weights.misfit(tensor).empty(), ExitCode::data, "{}: {} (for {})",
          path.string(), weights.misfit(tensor), buffer.fqn);
  return tensor;
}

}  // namespace

Import::Import(const WeightFiles& files, const model::DecoderShape& shape,
               std::optional<DType> dtype)
    : model_(model::spec_of(shape)), weights_(files, model_, names_in(files)) {
  require(names_in(files) != Names::torchtitan || shape.family == model::Family::llama,
          ExitCode::data,
          "{} has TorchTitan's names, which are supported for Llama only, because other families "
          "order their rows differently; convert the checkpoint with TorchTitan's "
          "scripts/checkpoint_conversion/convert_to_hf.py first",
          files.path().string());
  for (const model::ParamSpec& param : model_.params)
    tensors_.push_back(described(weights_, files.path(), param, dtype));
  for (const model::BufferSpec& buffer : model_.buffers)
    tensors_.push_back(described(weights_, files.path(), buffer));
  weights_.warn_of_unused();
  weights_.warn_of_borrowed();
}

std::filesystem::path Import::write(const checkpoint::StreamOptions& options,
                                    const std::string& config_toml) const {
  const nlohmann::json state = {{model::kPropertiesKey, model_.properties}};
  return checkpoint::write_streamed(options, {0, "", config_toml, json_text(state), tensors_},
                                    [&](const TensorSlice& slice, void* values) {
                                      if (weights_.find(slice.name))
                                        return weights_.read(slice, values);
                                      std::memset(values, 0, bytes_of(slice));
                                    });
}

}  // namespace tessera::hf
