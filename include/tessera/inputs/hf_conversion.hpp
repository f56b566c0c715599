// SPDX-License-Identifier: Apache-2.0
// Checkpoints from Hugging Face folders, and the other way round. Which model it is follows from a
// job; component hf does the rest.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tessera/base/dtype.hpp"
#include "tessera/config/job_config.hpp"
#include "tessera/model_spec/decoder_shape.hpp"

namespace tessera::inputs {

/// A job's model as programs must have it that know nothing of the job: with the positions that it
/// was trained with, if it was, and YaRN if they make the job's model have it.
model::DecoderShape shape_for_others(model::DecoderShape shape, const config::JobConfig& job,
                                     std::int64_t step);

struct ImportOptions {
  std::filesystem::path folder;  ///< a checkpoint folder: step-00000000 is made in it
  /// a job, as config::resolve() takes it; empty: config.json next to the weights
  std::vector<std::string> config;
  std::optional<DType> dtype;  ///< of all parameters; none: as each is stored
  int files = 1;               ///< shard files
};

/// Writes a model-only checkpoint from a Hugging Face folder, one .safetensors file, or such files
/// with TorchTitan's names (of Llama), in bounded memory. A config.json that describes the model is
/// copied into options.folder. Gives the step folder. Throws Error(data) naming what is missing or
/// misshapen, Error(usage) when the step folder exists.
std::filesystem::path import_weights(const std::filesystem::path& weights,
                                     const ImportOptions& options);

struct ExportOptions {
  DType dtype = DType::f32;
  bool replace = false;  ///< files of the folder that have the same names
  /// tokenizer.json or its folder; none: the run's
  std::optional<std::filesystem::path> tokenizer;
};
struct Exported {
  std::int64_t step, bytes;                        ///< of the weights
  std::optional<std::filesystem::path> tokenizer;  ///< the file that was copied
  std::string why_no_tokenizer;
};

/// Writes the latest checkpoint at `folder` (a step folder or a checkpoint folder) as a Hugging
/// Face folder: model.safetensors, config.json, and the tokenizer with its special ids. Throws
/// Error(checkpoint), Error(usage) when `out` holds weights already, Error(environment) when it
/// cannot be written.
Exported export_hf(const std::filesystem::path& folder, const std::filesystem::path& out,
                   const ExportOptions& options);

}  // namespace tessera::inputs
