// SPDX-License-Identifier: Apache-2.0
// The configuration classes of transformers that Tessera reads and writes: one table.
#pragma once

#include <span>
#include <string_view>

#include "tessera/base/json_reader.hpp"
#include "tessera/model_spec/decoder_shape.hpp"

namespace tessera::hf {

struct ConfigClass {
  std::string_view model_type;
  std::string_view architecture;
  model::Family family;
  bool mixture;  ///< with experts, where a family has both kinds
  model::DecoderShape (*read)(const JsonNode& config);
};

std::span<const ConfigClass> config_classes();

/// The class that describes such a model.
const ConfigClass& class_of(const model::DecoderShape& shape);

}  // namespace tessera::hf
