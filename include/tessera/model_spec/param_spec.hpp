// SPDX-License-Identifier: Apache-2.0
// What a parameter is, before anybody decides where its pieces live.
#pragma once

#include <cstdint>
#include <string>

#include "tessera/base/tensor_slice.hpp"

namespace tessera::model {

/// How tensor parallelism may cut a parameter, in the model's own words.
enum class Placement : std::uint8_t {
  replicated,  ///< whole on every tensor-parallel rank (norm weights)
  column,      ///< output features: dim 0 is cut, the layer's output is cut
  row,         ///< input features: dim 1 is cut, the layer's output is a partial sum
  vocabulary,  ///< rows of the vocabulary: dim 0 is cut
  shared,  ///< whole on every tensor-parallel rank, each of which applies it to a part of the work
           ///< (norms of heads, routers): gradients are parts of the sum
  expert,  ///< dim 0 counts experts: expert parallelism cuts it, tensor parallelism does not; else
           ///< as shared
  expert_column,  ///< the same, and ranks that share an expert cut dim 1, its output features
  expert_row,     ///< the same, and ranks that share an expert cut dim 2, its input features
};

inline bool counts_experts(Placement placement) { return placement >= Placement::expert; }

/// How a parameter is stored in Hugging Face files.
enum class HfLayout : std::uint8_t {
  same,         ///< as here
  each_expert,  ///< dim 0 taken apart: one tensor for each expert, whose number stands for "{}" in
                ///< the name
  transposed,   ///< dims 1 and 2 exchanged
  even_transposed,  ///< dims 1 and 2 exchanged, in the even columns of a tensor that holds two
                    ///< parameters
  odd_transposed,   ///< and in the odd ones
  even,             ///< the even columns
  odd,              ///< and the odd ones
};

/// Distribution of initial values: constant `mean` if std is 0, else normal(mean, std) cut to [low,
/// high].
struct InitialValues {
  double mean = 0, std = 0, low = -2, high = 2;
};

/// Name of every model's first parameter, [vocab, dim]: by which its weights are told from those of
/// other programs.
inline constexpr const char* kTokenEmbedding = "tok_embeddings.weight";

/// The one source of initial values, sharding, gradient reduction, clipping, checkpoint slices and
/// memory planning.
struct ParamSpec {
  std::string fqn;  ///< TorchTitan's name, e.g. "layers.0.attention.wq.weight"
  Shape global_shape;
  Placement placement = Placement::replicated;
  InitialValues init;
  std::string hf_name;  ///< Hugging Face's name, e.g. "model.layers.0.self_attn.q_proj.weight"
  int rope_heads = 0;   ///< > 0: rows are this many heads whose order differs in Hugging Face files
                        ///< (rotated halves there)
  int max_pieces = 0;   ///< > 0: tensor parallelism cuts it into no more (key-value heads); more
                        ///< ranks hold copies
  HfLayout hf_layout = HfLayout::same;
};

}  // namespace tessera::model
