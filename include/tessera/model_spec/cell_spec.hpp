// SPDX-License-Identifier: Apache-2.0
// A cell as data: its name, its weights, what must be there before it, and what it costs.
//
// A cell is a named step from one flow to the next; a model is a list of cells. Component `model`
// gives each cell its function, component `parallel` the communication that is declared here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tessera/base/tensor_slice.hpp"
#include "tessera/model_spec/slot.hpp"

namespace tessera::model {

/// What tensor parallelism has to do with slot h (x for the embedding) before and after a cell.
enum class Boundary : std::uint8_t {
  none,        ///< works on whatever tokens are here
  gather,      ///< before: needs the tokens of all tensor-parallel ranks
  reduce,      ///< after: a partial sum over tensor-parallel ranks; summed, and cut over tokens
  to_experts,  ///< before: slot m becomes the tokens that this rank routes: its own part or, where
               ///< ranks share each expert, those of all tensor-parallel ranks
  from_experts,  ///< after: slot h is distributed as m was before
};

/// How a slot is distributed over the tensor-parallel ranks; T tokens of a microbatch = B sequences
/// x S positions.
enum class Spread : std::uint8_t {
  tokens,    ///< [T / tp, features...]: each rank its own tokens
  features,  ///< [T, features...], the first of them cut over the ranks
  heads,     ///< [B, S, heads, ...], heads cut over the ranks
  apart,     ///< [features...], each rank its own
};

/// A slot in front of a cell; `features` are whole, as on one rank.
struct Live {
  Slot slot;
  Spread spread;
  Shape features;
};

/// What a cell computes.
enum class CellKind : std::uint8_t {
  embedding,           ///< tokens -> x
  norm,                ///< x -> h, and x stays; adds h to x first, if there is one
  mixture_norm,        ///< x -> m, and x stays; adds h to x first, if there is one
  final_norm,          ///< x -> h
  projections,         ///< h -> q, k, v, rotated
  latents,             ///< h -> [query latent | key-value latent | rotated key]
  latent_projections,  ///< those -> q, k, v
  attention,           ///< q, k, v -> h
  linear,              ///< h -> h: one product
  gated_linear,        ///< h -> h: SwiGLU of two products
  router,              ///< m -> scores, route, sent
  dispatch,            ///< m, scores, route, sent -> the same and others, see Slot
  experts,             ///< m -> m
  combine,             ///< what dispatch and experts made -> h
  output,              ///< h -> logits
};

struct CellSpec {
  std::string name;  ///< e.g. "layers.4.attention.wo"
  CellKind kind = CellKind::linear;
  std::vector<int> params;  ///< indices into ModelSpec::params
  /// Slots that must be there before this cell: what crosses a pipeline cut in front of it.
  std::vector<Live> live;
  int layer = -1;    ///< number of the block; -1 outside of blocks
  int mixture = -1;  ///< index into ModelSpec::mixtures; -1 = none
  Boundary input = Boundary::none;
  Boundary output = Boundary::none;
  bool residual = false;  ///< afterwards x += h, and h is dropped
  bool biased = false;    ///< the cell's products add biases
  /// The part of its weights that one token passes: 0 for a lookup, top_k / experts for experts.
  double activity = 1;
  /// heads x (query-key + value head dimension) where tokens attend, else 0.
  std::int64_t attention_width = 0;
  std::vector<int> buffers;    ///< indices into ModelSpec::buffers
  std::optional<Slot> source;  ///< before: h becomes this slot's tensor, which stays
  std::string bound;           ///< why no stage may begin with this cell; empty: one may
  bool splits_input = false;   ///< looks at the gathered slot h itself, not only through products()
};

}  // namespace tessera::model
