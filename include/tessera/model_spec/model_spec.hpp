// SPDX-License-Identifier: Apache-2.0
// A model as data: parameters, cells, and the units that are sharded, recomputed and gathered
// together. It holds no tensor and no function, so that plans and checks need no LibTorch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/base/shard.hpp"
#include "tessera/model_spec/cell_spec.hpp"
#include "tessera/model_spec/decoder_shape.hpp"
#include "tessera/model_spec/param_spec.hpp"
#include "tessera/model_spec/properties.hpp"

namespace tessera::model {

/// Cells [begin, end) that are sharded and recomputed together: a block, the embedding, or
/// [norm, output].
struct UnitSpec {
  std::string name;
  int begin = 0, end = 0;
};

/// Dimensions that FLOP counts, generation and checks of the mesh need, whatever the architecture.
struct Dimensions {
  std::int64_t dim = 0, layers = 0, heads = 0, kv_heads = 0, head_dim = 0, hidden = 0, vocab = 0;
  bool tied = false;
  std::int64_t value_dim = 0;  ///< of a head; head_dim is that of queries and keys
};

/// State other than parameters: float32 (float64 in a float64 model), whole on every rank of its
/// stage, saved with the model. Zero at the start.
struct BufferSpec {
  std::string fqn;
  Shape shape;
  std::string hf_name;  ///< empty: Hugging Face has none
};

/// One block's mixture of experts.
struct MixtureSpec {
  std::string name;  ///< "layers.3.moe"
  std::int64_t experts = 0, top_k = 0;
  /// index into ModelSpec::buffers of what is added to scores for the choice; -1 = none
  int bias = -1;
  double balance_rate = 0;  ///< step by which that bias evens the loads out
};

/// Coefficients of the losses that keep experts evenly used; model/balance_loss.hpp computes them.
struct BalanceLoss {
  /// Switch Transformer, https://arxiv.org/abs/2101.03961, equations 4 to 6, over all layers
  /// together as transformers' load_balancing_loss_func.
  double auxiliary = 0;
  double z = 0;  ///< ST-MoE, https://arxiv.org/abs/2202.08906, equation 5
  std::int64_t experts = 0, layers = 0;

  bool wanted() const { return auxiliary > 0 || z > 0; }
};

struct ModelSpec {
  std::string name;  ///< "llama3 8B", "config.json"
  Dimensions dimensions;
  std::vector<ParamSpec> params;  ///< a tied output layer refers to the embedding's entry
  std::vector<CellSpec> cells;
  std::vector<UnitSpec> units;
  std::vector<BufferSpec> buffers;
  std::vector<MixtureSpec> mixtures;
  BalanceLoss balance;
  Properties properties;

  std::int64_t parameter_count() const;
  /// Those that one token passes: of the experts, as many as it chooses.
  std::int64_t active_parameter_count() const;
  /// Parameters of the token embedding (counted out of the FLOP formula; a tied one stays in, as it
  /// is the output layer).
  std::int64_t embedding_parameter_count() const;
  /// Those whose routers are among some cells, in their order.
  std::vector<int> mixtures_of(Range cells) const;
  /// Experts of all these mixtures.
  std::int64_t experts_of(Range cells) const;
};

/// The decoder of that shape.
ModelSpec spec_of(const DecoderShape& shape);

/// Floating-point operations of one token's forward pass through a cell of `model`, in sequences of
/// `seq` positions; causal attention is counted half, backward costs twice as much.
double forward_flops(const ModelSpec& model, const CellSpec& cell, std::int64_t seq);

}  // namespace tessera::model
