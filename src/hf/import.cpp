// SPDX-License-Identifier: Apache-2.0
#include "tessera/hf/import.hpp"

#include <cstring>

#include "tessera/base/error.hpp"
#include "tessera/base/log.hpp"

namespace tessera::hf {
namespace {

bool is_floating(DType dtype) {
  return dtype == DType::f32 || dtype == DType::bf16 || dtype == DType::f16 || dtype == DType::f64;
}

/// The parameter as the checkpoint will have it.
TensorInfo described(const ModelWeights& weights, const std::filesystem::path& path,
                     const std::string& fqn, std::optional<DType> dtype) {
  const std::string name = "model/" + fqn;
  const std::string& misfit = weights.misfit(name);
  require(misfit.empty(), ExitCode::data,
          "{}: {} (for {}); are these the weights of another model?", path.string(), misfit, fqn);
  TensorInfo tensor = *weights.find(name);
  require(is_floating(tensor.dtype), ExitCode::data,
          "{}: {} is stored as {} without known scales; supported are float32, bfloat16, "
          "float16, float64, FP8 in blocks of 128 x 128 and MXFP4",
          path.string(), fqn, name_of(tensor.dtype));
  tensor.dtype = dtype.value_or(tensor.dtype);
  return tensor;
}

/// What balances experts; zero where the files have none.
TensorInfo described(const ModelWeights& weights, const std::filesystem::path& path,
                     const model::BufferSpec& buffer) {
  const std::string name = "model/" + buffer.fqn;
  require(!weights.find(name) || weights.misfit(name).empty(), ExitCode::data, "{}: {} (for {})",
          path.string(), weights.misfit(name), buffer.fqn);
  return {name, DType::f32, buffer.shape};
}

void warn_of_unused(const ModelWeights& weights, const std::filesystem::path& path,
                    const std::string& model) {
  const std::vector<std::string> unused = weights.unused();
  if (!unused.empty())
    log::warning("{}: {} tensors are not part of {} and are skipped; the first is {}",
                 path.string(), unused.size(), model, unused.front());
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
    tensors_.push_back(described(weights_, files.path(), param.fqn, dtype));
  for (const model::BufferSpec& buffer : model_.buffers)
    tensors_.push_back(described(weights_, files.path(), buffer));
  warn_of_unused(weights_, files.path(), model_.name);
}

std::filesystem::path Import::write(const checkpoint::StreamOptions& options,
                                    const std::string& config_toml) const {
  return checkpoint::write_streamed(
      options, {0, "", config_toml, "{}", tensors_}, [&](const TensorSlice& box, void* values) {
        if (weights_.find(box.name)) return weights_.read(box, values);
        std::memset(values, 0,
                    static_cast<std::size_t>(element_count(box.extent)) * size_of(box.dtype));
      });
}

}  // namespace tessera::hf
