// SPDX-License-Identifier: Apache-2.0
// Which linear layers multiply in 8-bit floating point, and how their operands are scaled.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/model_spec/model_spec.hpp"

namespace tessera::plan {

/// The filter that stands for LinearPrecision::keeps_small.
inline constexpr std::string_view kSmallLayers = "auto_filter_small_kn";

/// The module of the logits.
inline constexpr std::string_view kOutputLayer = "output";

/// torchao's names.
enum class LinearRecipe : std::uint8_t { none, tensorwise, rowwise, rowwise_with_gw_hp };

struct LinearPrecision {
  LinearRecipe recipe = LinearRecipe::none;
  /// Modules whose names contain one of these stay as they are.
  std::vector<std::string> kept = {};
  bool keeps_small = false;  ///< so do those that an H100 multiplies no faster in float8

  bool rounds() const { return recipe != LinearRecipe::none; }
  /// Are products with this parameter rounded, if there are any? Not those of experts, nor where a
  /// size is no multiple of 16. The embedding multiplies where it is the output layer, too, and has
  /// that layer's name here.
  bool rounds(const model::ParamSpec& weight) const;
  /// Does no name in `kept` keep this module as it is?
  bool rounds(std::string_view module) const;
  /// "float8 rowwise in 28 of 29 linear layers"; empty without a recipe.
  std::string summary(const model::ModelSpec& model) const;
};

}  // namespace tessera::plan
