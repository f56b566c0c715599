// SPDX-License-Identifier: Apache-2.0
// A microbatch's forward pass through a stage that can stop where its rows travel to other ranks.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include <memory>
#include <optional>
#include <vector>

#include "tessera/parallel/stage.hpp"

namespace tessera::parallel {

class UnitForward;

class StageForward {
 public:
  /// See Stage::forward(). The stage must outlive this.
  StageForward(Stage& stage, int microbatch, const model::Flow& in, const LossInput* loss);
  StageForward(const StageForward&) = delete;
  StageForward& operator=(const StageForward&) = delete;
  ~StageForward();

  /// Computes until rows are on their way, and then returns true, or to the end. After the end it
  /// does nothing. On any thread.
  bool advance();
  /// At the end.
  StagePass take() { return std::move(result_); }

 private:
  bool advance_unit();
  void begin_unit();
  void end_unit(TapeEntry entry);

  Stage& stage_;
  int microbatch_;
  ContextOperations operations_;
  model::CellContext context_;
  const bool records_;  ///< graphs
  std::optional<LossInput> loss_;
  StagePass result_;
  std::size_t next_ = 0;               ///< unit
  std::unique_ptr<UnitForward> unit_;  ///< in the middle of that unit
  std::vector<at::Tensor> saved_;      ///< by its operations, where activations are offloaded
};

}  // namespace tessera::parallel
