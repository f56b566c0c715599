// SPDX-License-Identifier: Apache-2.0
// The mesh with its communicators: each made once, shared by all axes that span the same ranks.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tessera/comm/world.hpp"
#include "tessera/mesh/layout.hpp"

namespace tessera::mesh {

class DeviceMesh {
 public:
  /// Puts something around a communicator that was just made, collectively over its members: a
  /// simulated wire, a counter.
  using Decorate =
      std::function<std::unique_ptr<comm::Communicator>(std::unique_ptr<comm::Communicator>)>;

  /// Collective over all ranks of `world`; `backend` and `memory` as for World::make. In host
  /// memory it bootstraps with MPI_Cart_create / MPI_Cart_sub; communicators of device memory are
  /// split from one root. `decorate`, if given, is applied to every communicator that spans several
  /// ranks, in the same order on all of them; for measurements and tests.
  DeviceMesh(comm::World& world, const Layout& layout, comm::Backend backend,
             const Decorate& decorate = {}, comm::Memory memory = comm::Memory::host);
  /// A mesh of recording communicators: rank `rank` of `layout`, with no traffic (rehearsals,
  /// planner).
  DeviceMesh(const Layout& layout, Rank rank);
  ~DeviceMesh();

  const Layout& layout() const { return layout_; }
  Rank rank() const { return rank_; }
  const Coord& coord() const { return coord_; }
  int coord(Axis axis) const { return coord_[axis]; }
  /// Communicator along one axis; size 1 axes give a self communicator.
  comm::Communicator& along(Axis axis);
  /// The ranks of along(pp) again, as a queue of its own: gradients travel up a pipeline while
  /// activations travel down.
  comm::Communicator& upstream();
  /// Communicator over several axes, ordered outer to inner, e.g. {dp_shard, cp} (FSDP) or
  /// {dp_replicate, dp_shard, cp}. The usual combinations are made in the constructor, so this call
  /// never communicates: every single axis, {dp_shard,cp}, {dp_replicate,dp_shard},
  /// {dp_replicate,dp_shard,cp}, {pp,tp}, {dp_replicate,dp_shard,cp,tp} (one pipeline stage) and
  /// all five (the world).
  comm::Communicator& along(const std::vector<Axis>& axes);
  /// `ranks` neighbours in `all`, one of this mesh's communicators, this rank among them. Made by
  /// the first call, which is collective over `all`, and kept.
  comm::Communicator& neighbours(comm::Communicator& all, int ranks);
  /// First and last pipeline stage of this rank's pipeline (rank 0 = first), for tied embeddings;
  /// self communicator when pp = 1; null on the stages between.
  comm::Communicator* embedding_group();
  /// Of the pipeline's ranks `first` and `last`, made by each call, which is collective over pp;
  /// null on the other ranks.
  std::unique_ptr<comm::Communicator> pipeline_pair(int first, int last);
  /// Ranks that hold the other experts of this rank's copy (ep), and those that share its experts'
  /// parameters (efsdp).
  comm::Communicator& experts();
  comm::Communicator& expert_shards();
  /// Host-memory communicator over all ranks, whatever the back end: control flow and checkpoints.
  comm::Communicator& control();
  /// Each communicator of this rank once, but for those of a single rank. Ranks at the ends of a
  /// pipeline may have one that others lack.
  void visit(const std::function<void(const comm::Communicator&)>& look) const;
  /// The table that is printed once: axis, degree, backend, ranks of rank 0's groups, hosts.
  std::string overview() const;

 private:
  struct Impl;
  Layout layout_;
  Rank rank_;
  Coord coord_{};
  std::unique_ptr<Impl> impl_;
};

}  // namespace tessera::mesh
