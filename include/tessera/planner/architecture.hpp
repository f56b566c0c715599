// SPDX-License-Identifier: Apache-2.0
// A decoder as the planner sees it: sizes, and the parameters and FLOPs that follow from them.
//
// Wider than model::DecoderShape, so that published runs of other programs can be priced too: plain
// feed-forward layers, learned positions, multi-token prediction.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tessera/model_spec/decoder_shape.hpp"

namespace tessera::planner {

struct ExpertShape {
  std::int64_t experts = 8, top_k = 2;
  std::int64_t hidden = 0;       ///< of one expert
  std::int64_t shared = 0;       ///< hidden size of the experts that every token passes, together
  std::int64_t first_dense = 0;  ///< blocks before the first mixture
  std::int64_t every = 1;        ///< 2: every second block is a mixture
  bool biased = false;           ///< experts add biases
};

struct Architecture {
  std::string name;
  std::int64_t dim = 0, layers = 0, heads = 0, kv_heads = 0, head_dim = 0, hidden = 0, vocab = 0;
  bool gated = true;  ///< SwiGLU with three matrices, or two matrices
  bool tied = false;
  bool qk_norm = false;
  std::int64_t window = 0;      ///< keys that queries of every second block see; 0: all of them
  std::int64_t predictors = 0;  ///< blocks after the last that predict further tokens
  std::int64_t learned_positions = 0;  ///< rows of a table of positions
  std::optional<model::LatentAttention> latent;
  std::optional<ExpertShape> mixture;

  bool is_mixture(std::int64_t layer) const;
  std::int64_t mixture_layers() const;

  // Parameters of matrices and norms; biases are not counted.
  double attention_params() const;
  double dense_params() const;   ///< of a feed-forward layer
  double expert_params() const;  ///< of one expert
  /// Of a block; `mixture`: with all of its experts.
  double block_params(bool mixture) const;
  double embedding_params() const;
  double head_params() const;  ///< of the output's product; a tied model stores it once
  double params() const;

  /// heads x (query-key + value head dimension).
  double attention_width() const;
  /// Of one token, forward and backward: 6 for each parameter that a token passes, and
  /// 6 x width x seq for attention, half of it if `causal`. Windows are not subtracted, as no
  /// published convention does.
  double flops(std::int64_t seq, bool causal) const;
};

Architecture architecture_of(const model::DecoderShape& shape);

}  // namespace tessera::planner
