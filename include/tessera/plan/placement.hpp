// SPDX-License-Identifier: Apache-2.0
// Where a parameter is stored on the mesh: one rank's piece, who else has it, and which sums its
// gradient needs.
#pragma once

#include <cstdint>
#include <vector>

#include "tessera/base/dtype.hpp"
#include "tessera/base/shard.hpp"
#include "tessera/base/tensor_slice.hpp"
#include "tessera/mesh/layout.hpp"
#include "tessera/model_spec/param_spec.hpp"

namespace tessera::plan {

/// Ranks over which a gradient is summed.
enum class ReduceOver : std::uint8_t {
  fsdp,       ///< they share the piece by rows
  replicate,  ///< dp_replicate: they have the same rows and read other samples
  tp_copies,  ///< neighbours along tp that have the same piece and did another part of the work
  tied,       ///< the first and the last pipeline stage, which both use the parameter
};

/// What matters in addition to mesh and parameter.
struct PlacementOptions {
  bool sequence_parallel = true;  ///< ranks of tp have parts of the tokens between matmuls
  /// The pipeline ranks that hold the parameter, and the number of this one among them. Two ranks
  /// hold a tied parameter, unless one rank has the first and the last stage.
  int stage_copy = 0, stage_copies = 1;
};

/// A value: rank arithmetic, no tensor and no communicator.
struct Placement {
  Shape local_shape;       ///< this tensor-parallel and expert-parallel rank's piece of the whole
  Shape local_offset;      ///< where the piece begins
  std::int64_t parts = 1;  ///< > 1: more fsdp ranks than experts share the piece; the rows of each
                           ///< expert's matrix are cut into that many, which `rows` counts
  int shards = 1;          ///< fsdp ranks that share the piece
  Range rows;              ///< this fsdp rank's rows of the piece
  std::int64_t chunk_rows = 0;  ///< rows of every fsdp rank but the last ones
  int tp_copies = 1;            ///< neighbouring tensor-parallel ranks that hold the same piece
  int replica = 0;   ///< number of this rank among those that hold the same rows of the piece
  int replicas = 1;  ///< how many these are
  /// In the order in which the sums are done. fsdp is there on one rank too: it moves gradients of
  /// microbatches into the shard.
  std::vector<ReduceOver> reduce_over;

  /// This rank counts the parameter for the global norm: one copy over all axes does.
  bool counted() const { return replica == 0; }
  bool reduces_over(ReduceOver what) const;
  /// The piece as the fsdp ranks cut it: by dim 0.
  Shape shared_shape() const;
  /// Elements of one row of shared_shape().
  std::int64_t row_elements() const;
  /// The box of the whole parameter that `rows` are, as checkpoints name it.
  TensorSlice slice(const model::ParamSpec& spec, const std::string& prefix, DType dtype) const;
};

/// The dimension that tensor parallelism cuts; -1 if it cuts none.
int tp_dimension(model::Placement placement);

/// Of `spec` on `rank` of the mesh. Contract: the degrees divide what they cut (the job was checked
/// against the model).
Placement place(const model::ParamSpec& spec, const mesh::Layout& layout, mesh::Rank rank,
                const PlacementOptions& options = {});

}  // namespace tessera::plan
