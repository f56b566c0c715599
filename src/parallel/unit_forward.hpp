// SPDX-License-Identifier: Apache-2.0
// A forward pass through a unit that can stop where its rows travel to other ranks.
#pragma once

#include "tessera/kernels/operation.hpp"
#include "tessera/parallel/unit.hpp"
#include "unit_operations.hpp"

namespace tessera::parallel {

/// All that it is given must outlive it.
class UnitForward {
 public:
  /// See Unit::forward().
  UnitForward(const Unit& unit, const model::Flow& in, const model::CellContext& context,
              const LossInput* loss, Recompute recompute);
  UnitForward(const UnitForward&) = delete;
  UnitForward& operator=(const UnitForward&) = delete;

  /// Computes until rows are on their way, and then returns true, or to the end. On any thread,
  /// where autograd is on if a graph is wanted.
  bool advance();
  /// At the end.
  TapeEntry take() { return std::move(entry_); }

 private:
  bool advance_cells();
  void end(std::size_t cell);
  void compute_beside(std::size_t cells);
  void add_loss();

  const Unit& unit_;
  const LossInput* loss_;
  const std::int64_t loss_tokens_;  ///< see Unit::loss_chunk()
  const std::size_t cells_;
  TapeEntry entry_;
  UnitOperations operations_;
  model::CellContext context_;
  model::Flow flow_;
  std::size_t next_ = 0;    ///< cell
  model::Arrival arrival_;  ///< in the middle of that cell
  at::Tensor normed_;       ///< input of a shared expert, which computes in the middle of dispatch
  kernels::OperationNumbers numbers_;
};

}  // namespace tessera::parallel
