// SPDX-License-Identifier: Apache-2.0
// config.json: the shape of a model in Hugging Face's words.
#pragma once

#include <filesystem>
#include <string>

#include "tessera/base/dtype.hpp"
#include "tessera/model_spec/decoder_shape.hpp"

namespace tessera::hf {

/// Of the norms of latents in transformers' classes, whatever rms_norm_eps is. Tessera's own key
/// latent_norm_eps names another one.
inline constexpr double kLatentEps = 1e-6;

/// A config.json of a model_type in config_classes.cpp, in the spelling of transformers 4 or 5;
/// what the file lacks takes Hugging Face's default. Throws Error(usage) that names the file and
/// the key.
model::DecoderShape read_config(const std::filesystem::path& file);

/// The config.json (transformers 4 spelling, which 5 reads too) that describes this shape; `dtype`
/// is the weights'. YaRN that applies beyond some length only is omitted: settle it before. Throws
/// Error(usage) where Hugging Face's class cannot compute as the model does.
std::string config_text(const model::DecoderShape& shape, DType dtype);

/// Throws as config_text().
void require_exportable(const model::DecoderShape& shape);

}  // namespace tessera::hf
