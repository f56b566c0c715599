// SPDX-License-Identifier: Apache-2.0
// The folder in which Hugging Face's programs keep a model.
#pragma once

#include <filesystem>
#include <string>

#include "tessera/base/dtype.hpp"
#include "tessera/hf/assets.hpp"
#include "tessera/model_spec/decoder_shape.hpp"
#include "tessera/model_spec/properties.hpp"

namespace tessera::hf {

/// Whether the folder has a config.json and weights as Hugging Face's programs write them.
bool holds_weights(const std::filesystem::path& folder);

/// Makes the folder for a model with these assets. Throws Error(usage) where weights or a tokenizer
/// would be replaced (without `replace`), or weights read next to new ones, Error(environment) when
/// it cannot be made.
void prepare_folder(const std::filesystem::path& folder, const Assets& assets, bool replace);

/// The config.json in a folder of weights, or beside a file of them; it need not be there.
std::filesystem::path config_beside(const std::filesystem::path& weights);

/// model::differences() from the config.json beside weights, or in a folder of them; "" if there is
/// none that Tessera can read.
std::string described_differences(const model::Properties& now,
                                  const std::filesystem::path& weights);

/// The file of the weights in such a folder.
std::filesystem::path weights_in(const std::filesystem::path& folder);

/// Writes config.json with the special ids of `assets`, and the assets. `dtype` is the weights'.
/// Throws Error(environment).
void write_texts(const std::filesystem::path& folder, const model::DecoderShape& shape, DType dtype,
                 const Assets& assets);

}  // namespace tessera::hf
