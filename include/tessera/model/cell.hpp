// SPDX-License-Identifier: Apache-2.0
// The functions of cells, and what they are called with. See model_spec/cell_spec.hpp for the rest.
//
// Functions know nothing of ranks. They compute with the pieces of weights that they are given and
// take head counts from the pieces' shapes.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "tessera/base/shard.hpp"
#include "tessera/model/flow.hpp"
#include "tessera/model/operations.hpp"
#include "tessera/model/token_exchange.hpp"

namespace tessera::model {

/// Keys and values of the positions seen so far, one pair a layer; [B, S, Hkv, hd] each, where S
/// may count more than have come. For generation.
struct KeyValueCache {
  std::int64_t positions = 0;  ///< the most that come
  std::vector<at::Tensor> keys, values;
};

/// Tokens that each expert got, by mixture of the model: [experts] int64; undefined where nobody
/// counts.
struct ExpertLoads {
  std::vector<at::Tensor> counts;
  /// Adds those of a microbatch, [experts].
  void add(int mixture, const at::Tensor& tokens);
};

/// RoPE's cosines and sines of positions of a sequence, [positions, rotated dimensions / 2] each.
struct Angles {
  at::Tensor cos, sin;
  /// Copies the rows of these positions.
  Angles of(std::span<const Range> positions) const;
};

/// What a cell needs to know in addition to its weights and the flow.
struct CellContext {
  std::span<const Weight> weights;  ///< in the order of CellSpec::params
  std::int64_t batch = 0;           ///< rows of this microbatch
  std::int64_t position = 0;        ///< position of the first token of each row
  KeyValueCache* cache = nullptr;   ///< set while generating
  const Operations* operations = &plain_operations();
  std::span<const at::Tensor> buffers = {};  ///< in the order of CellSpec::buffers
  /// set where a token passes for the first time, not where it is recomputed
  ExpertLoads* loads = nullptr;
  const TokenExchange* exchange = &no_exchange();
  Arrival* arrival = nullptr;  ///< from a cell's forward() to its arrived(), where rows travel
  int expert_parts = 1;        ///< ranks that share each expert, whose outputs are summed
  /// Of all positions or, where context parallelism cuts sequences, of this rank's.
  const Angles* angles = nullptr;

  /// Those of the `count` tokens that each sequence has here, as views.
  Angles angles_of(std::int64_t count) const;
};

using CellFunction = std::function<void(Flow&, const CellContext&)>;

/// What a cell computes with this rank's pieces of its weights.
struct CellFunctions {
  /// Where rows travel at the end of a cell, it leaves them on their way, in CellContext::arrival.
  CellFunction forward;
  /// After CellSpec::output, on this rank's part of the tokens: a bias of what was summed. May be
  /// empty.
  CellFunction epilogue;
  /// After forward(), what it does with rows that have travelled. Empty: the cell sends none.
  CellFunction arrived = {};
};

}  // namespace tessera::model
