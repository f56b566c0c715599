// A cell is a named step from one flow to the next; a model is a list of cells.
//
// Cells know nothing of ranks. They compute with the pieces of weights that they are given and take head counts from
// the pieces' shapes. Communication between ranks is declared (`input`, `output`); component `parallel` adds it.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tessera/base/shard.hpp"
#include "tessera/base/tensor_slice.hpp"
#include "tessera/model/flow.hpp"
#include "tessera/model/operations.hpp"
#include "tessera/model/token_exchange.hpp"

namespace tessera::model {

/// Keys and values of the positions seen so far, one pair a layer; [B, S, Hkv, hd] each. For generation.
struct KeyValueCache {
  std::vector<at::Tensor> keys, values;
};

/// Tokens that each expert got, by mixture of the model: [experts] int64; undefined where nobody counts.
struct ExpertLoads {
  std::vector<at::Tensor> counts;
  /// Adds the choices of some tokens, [T, K].
  void add(int mixture, const at::Tensor& chosen);
};

/// What a cell needs to know beside its weights and the flow.
struct CellContext {
  std::span<const Weight> weights;  ///< in the order of Cell::params
  std::int64_t batch = 0;           ///< rows of this microbatch
  std::int64_t position = 0;        ///< position of the first token of each row
  KeyValueCache* cache = nullptr;   ///< set while generating
  const Operations* operations = &plain_operations();
  std::span<const at::Tensor> buffers = {};  ///< in the order of Cell::buffers
  ExpertLoads* loads = nullptr;  ///< set where a token passes for the first time, not where it is recomputed
  const TokenExchange* exchange = &no_exchange();
  int expert_parts = 1;  ///< ranks that share each expert, whose outputs are summed
  /// Where context parallelism cuts sequences: the positions of each row's tokens; empty = one run from `position`.
  std::span<const Range> positions = {};

  /// Rows of a table that has one for each position, for the `count` tokens that each sequence has here.
  at::Tensor rows_of(const at::Tensor& table, std::int64_t count) const;
};

/// What tensor parallelism has to do with slot h (x for the embedding) before and after a cell.
enum class Boundary : std::uint8_t {
  none,          ///< works on whatever tokens are here
  gather,        ///< before: needs the tokens of all tensor-parallel ranks
  reduce,        ///< after: a partial sum over tensor-parallel ranks; summed, and cut over tokens
  to_experts,    ///< before: slot m becomes the tokens that this rank routes: its own part or, where ranks share each
                 ///< expert, those of all tensor-parallel ranks
  from_experts,  ///< after: slot h lies as m did before
};

/// How a slot lies on the tensor-parallel ranks; T tokens of a microbatch = B sequences x S positions.
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

struct Cell {
  std::string name;         ///< e.g. "layers.4.attention.wo"
  std::vector<int> params;  ///< indices into Model::params
  std::vector<Live> live;   ///< slots that must be there before this cell: what crosses a pipeline cut in front of it
  Boundary input = Boundary::none;
  Boundary output = Boundary::none;
  bool residual = false;  ///< afterwards x += h, and h is dropped
  std::function<void(Flow&, const CellContext&)> forward;
  double activity = 1;  ///< the part of its weights that one token passes: 0 for a lookup, top_k / experts for experts
  std::int64_t attention_width = 0;  ///< heads x (query-key + value head dimension) where tokens attend, else 0
  std::vector<int> buffers;          ///< indices into Model::buffers
  std::optional<Slot> source;        ///< before: h becomes this slot's tensor, which stays
  /// After `output`, on this rank's part of the tokens: a bias of what was summed.
  std::function<void(Flow&, const CellContext&)> epilogue;
  std::string bound;          ///< why no stage may begin with this cell; empty: one may
  bool splits_input = false;  ///< looks at the gathered slot h itself, instead of handing it to products()
};

}  // namespace tessera::model
