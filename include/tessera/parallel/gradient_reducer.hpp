// SPDX-License-Identifier: Apache-2.0
// Sums of gradients over microbatches and ranks: each shard group's gradient is a bucket, which
// passes through its Placement::reduce_over in order.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "tessera/mesh/device_mesh.hpp"
#include "tessera/model_spec/model_spec.hpp"
#include "tessera/parallel/shard_group.hpp"
#include "tessera/schedule/indexes.hpp"

namespace tessera::parallel {

class GradientBucket;

struct ReducerOptions {
  bool each_microbatch = false;  ///< is reduced by itself; else all of a step together
  bool tree = false;             ///< microbatches are added over the fixed tree of their numbers
  schedule::PipelineRank first_rank{}, last_rank{};  ///< of the first and the last stage
};

/// Of all stages of one rank. All ranks of a stage call add() for the same units and microbatches
/// in the same order, so that communicators are launched in one order.
class GradientReducer {
 public:
  /// Makes the communicators that no axis of the mesh has. Collective over the mesh, which must
  /// outlive this.
  GradientReducer(const model::ModelSpec& model, mesh::DeviceMesh& mesh,
                  const ReducerOptions& options);
  ~GradientReducer();
  GradientReducer(const GradientReducer&) = delete;
  GradientReducer& operator=(const GradientReducer&) = delete;

  /// Allocates the gradients of a unit's groups, but for frozen ones. The groups must outlive this.
  void add_unit(std::span<ShardGroup* const> groups);

  void begin_step(int microbatches);
  /// Takes the gradients of one microbatch that backward left in the leaves of a unit, and starts
  /// the sum of each bucket that is complete. Where requests hold streams alone, the sum over
  /// replicas follows at once; else after the backward of the next unit. At most two units wait for
  /// their reduction, and two more for the sum over replicas.
  void add(std::span<ShardGroup* const> unit, std::int64_t microbatch);
  /// Ends the reductions that run, so that their memory is free: once a forward had them run beside
  /// it, between the backwards of units or inside one.
  void settle();
  /// Ends all sums: ShardedParam::gradient is whole. Copies within tp and tied weights follow here:
  /// the former in one exchange for all buckets, the latter when both stages are done.
  void finish();
  /// Forgets the gradients.
  void end_step(StepEnd how = StepEnd::done);

  /// Bytes of partial sums that wait in a step of this many microbatches, as a multiple of
  /// accumulator_bytes(): an upper bound.
  std::int64_t waiting_sums(int microbatches) const;
  /// Bytes of the gradients of one microbatch, or of a partial sum of them.
  static std::int64_t accumulator_bytes(const ShardGroup& group);
  /// Bytes that the sums of a bucket read and write in addition to those.
  static std::int64_t reduction_bytes(const ShardGroup& group);
  /// What this has allocated now on the device of forward and backward.
  void add_memory(MemoryKinds& kinds) const;

 private:
  using Unit = std::vector<GradientBucket*>;
  GradientBucket* find(const ShardGroup* group) const;
  void end_oldest_reduction();
  static bool may_sum_replicas(const GradientBucket& bucket);
  void make_neighbours(const model::ModelSpec& model);
  void tie_ends();
  void sum_copies();
  void sum_pieces(std::vector<at::Tensor>& pieces, comm::Communicator& over) const;
  void sum_tied();

  mesh::DeviceMesh& mesh_;
  ReducerOptions options_;
  std::vector<std::unique_ptr<GradientBucket>> buckets_;  ///< in the order of the units
  std::map<const ShardGroup*, GradientBucket*> bucket_of_;
  /// where reductions end that no computation waits for, of all groups' device
  std::optional<kernels::SideStream> beside_;
  std::deque<Unit> reducing_;           ///< units whose gradients were added last
  std::deque<Unit> replicating_;        ///< units that followed them
  comm::Communicator* ends_ = nullptr;  ///< the ranks of first and last stage, if these are two
  std::unique_ptr<comm::Communicator> own_ends_;
};

}  // namespace tessera::parallel
