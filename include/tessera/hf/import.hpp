// SPDX-License-Identifier: Apache-2.0
// Weights from other programs as a checkpoint of Tessera's.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tessera/base/dtype.hpp"
#include "tessera/checkpoint/stream.hpp"
#include "tessera/hf/model_weights.hpp"
#include "tessera/model_spec/decoder_shape.hpp"

namespace tessera::hf {

class Import {
 public:
  /// The model of `shape` in `files`, which outlive it. `dtype` is that of all parameters; none: as
  /// each is stored. Warns of tensors that are not part of the model. Throws Error(data) naming
  /// what is missing or misshapen.
  Import(const WeightFiles& files, const model::DecoderShape& shape, std::optional<DType> dtype);
  Import(const Import&) = delete;
  Import& operator=(const Import&) = delete;

  /// Writes step 0 in bounded memory: a checkpoint of the model alone. `config_toml` describes the
  /// model and is kept in it. Gives the step folder. Throws as checkpoint::write_streamed() does.
  std::filesystem::path write(const checkpoint::StreamOptions& options,
                              const std::string& config_toml) const;

 private:
  model::ModelSpec model_;
  ModelWeights weights_;
  std::vector<TensorInfo> tensors_;
};

}  // namespace tessera::hf
