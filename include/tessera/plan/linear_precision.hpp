// SPDX-License-Identifier: Apache-2.0
// Which linear layers multiply in 8-bit floating point, and how their operands are scaled.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/dtype.hpp"
#include "tessera/mesh/layout.hpp"
#include "tessera/model_spec/model_spec.hpp"
#include "tessera/plan/batch_plan.hpp"

namespace tessera::plan {

/// The filter that stands for LinearPrecision::keeps_small.
inline constexpr std::string_view kSmallLayers = "auto_filter_small_kn";

/// The module of the logits.
inline constexpr std::string_view kOutputLayer = "output";

/// Elements of a row that share a scale by recipe `blockwise`; of weights, a square of them does.
inline constexpr std::int64_t float8_block = 128;

/// torchao's names; of MXFP8, those of its ways to choose a scale.
enum class LinearRecipe : std::uint8_t {
  none,
  tensorwise,
  rowwise,
  rowwise_with_gw_hp,
  blockwise,  ///< ours, of DeepSeek-V3 (https://arxiv.org/abs/2412.19437, section 3.3.2)
  mxfp8_floor,
  mxfp8_rceil
};

/// Which experts multiply in 8-bit floating point.
struct ExpertPrecision {
  LinearRecipe recipe = LinearRecipe::none;  ///< rowwise or mxfp8_rceil
  /// Modules whose names contain one of these are rounded.
  std::vector<std::string> modules = {};

  bool rounds() const { return recipe != LinearRecipe::none && !modules.empty(); }
  /// Are products with this parameter rounded? Matrices of experts alone are.
  bool rounds(const model::ParamSpec& weight) const;
  /// "experts in float8 rowwise, emulated, in 26 of 26 mixtures"; empty without a recipe.
  std::string summary(const model::ModelSpec& model) const;
};

struct LinearPrecision {
  LinearRecipe recipe = LinearRecipe::none;
  /// Modules whose names contain one of these stay as they are.
  std::vector<std::string> kept = {};
  bool keeps_small = false;    ///< so do those that an H100 multiplies no faster in float8
  bool emulated = false;       ///< GPUs do not multiply in float8, either
  bool gathers_bytes = false;  ///< weights are rounded before they are gathered, as bytes
  ExpertPrecision experts = {};

  bool rounds() const { return recipe != LinearRecipe::none; }
  bool is_mx() const {
    return recipe == LinearRecipe::mxfp8_floor || recipe == LinearRecipe::mxfp8_rceil;
  }
  /// The key that has the names in `kept`.
  const char* filter_key() const {
    return is_mx() ? "quantize.linear.mx.filter_fqns" : "quantize.linear.float8.filter_fqns";
  }
  /// Are the elements that share a scale in one rank's part, so that tensor-parallel ranks need not
  /// agree?
  bool has_local_scales() const { return is_mx() || recipe == LinearRecipe::blockwise; }
  /// Are products with this parameter rounded, if there are any? Not those of experts, nor where a
  /// size is no multiple of 16. The embedding multiplies where it is the output layer, too, and has
  /// that layer's name here.
  bool rounds(const model::ParamSpec& weight) const;
  /// Is this parameter gathered in 8 bits? Not the embedding, which layers read, too.
  bool gathers_bytes_of(const model::ParamSpec& weight) const;
  /// Bytes of its elements in a gather, where layers compute in `type`.
  std::int64_t gathered_element_bytes(const model::ParamSpec& weight, DType type) const {
    return gathers_bytes_of(weight) ? 1 : static_cast<std::int64_t>(size_of(type));
  }
  /// Does no name in `kept` keep this module as it is?
  bool rounds(std::string_view module) const;
  /// Names in `kept` that are in no module of the model's linear layers.
  std::vector<std::string> unknown_layers(const model::ModelSpec& model) const;
  /// Are GPUs to multiply in 8 bits, where layers compute in `type`?
  bool wants_8bit_products(DType type) const;
  /// What GPUs emulate where layers compute in `type`: "mxfp8 floor", "experts in float8 rowwise".
  std::vector<std::string> emulated_products(DType type) const;
  /// "float8 rowwise, emulated, in 28 of 29 linear layers"; empty without a recipe. `by_device`: it
  /// is not emulated.
  std::string summary(const model::ModelSpec& model, bool by_device) const;
};

/// Do GPUs multiply the operands of a recipe in 8 bits, into `type`? Where they do not, and on the
/// host, products are emulated.
bool has_8bit_products(LinearRecipe recipe, DType type);

/// Each product of an MX layer sums over whole blocks of 32 elements, on each rank: what it sums of
/// weights, and the tokens of a microbatch. Blocks of 128 may be short at a matrix' end, but are in
/// one rank's part. Throws Error(usage).
void check_blocks_fit(const model::ModelSpec& model, const mesh::Layout& layout,
                      const LinearPrecision& precision);
/// The job names experts that the model has, with sizes that are multiples of a recipe's unit on
/// each rank. Throws Error(usage).
void check_rounded_experts(const model::ModelSpec& model, const mesh::Layout& layout,
                           const ExpertPrecision& precision);
void check_block_tokens(const model::ModelSpec& model, const mesh::Layout& layout,
                        const LinearPrecision& precision, const BatchPlan& batch,
                        bool sequence_parallel);

}  // namespace tessera::plan
