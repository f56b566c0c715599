// SPDX-License-Identifier: Apache-2.0
// A pipeline stage on one rank: the tape between its units, forward and backward.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tessera/mesh/device_mesh.hpp"
#include "tessera/model/model.hpp"
#include "tessera/parallel/context_attention.hpp"
#include "tessera/parallel/gradient_reducer.hpp"
#include "tessera/parallel/linear.hpp"
#include "tessera/parallel/recompute_budget.hpp"
#include "tessera/parallel/rounded_linear.hpp"
#include "tessera/parallel/stage_experts.hpp"
#include "tessera/parallel/stage_options.hpp"
#include "tessera/parallel/stage_weights.hpp"
#include "tessera/parallel/unit.hpp"
#include "tessera/plan/stage_units.hpp"

namespace tessera::parallel {

/// What a forward pass gives.
struct StagePass {
  model::Flow flow;         ///< the slots of outputs(); empty on the last stage
  at::Tensor loss;          ///< on the last stage: scaled, without a graph
  at::Tensor token_losses;  ///< on the last stage: unscaled, [T]
};

/// What a backward pass computes.
enum class Backward : std::uint8_t {
  whole,   ///< all gradients
  inputs,  ///< the input's; those of weights are left for backward_weights()
};

class Stage {
 public:
  /// Cells [cells.begin, cells.end()) of `model` for this rank of the mesh: units, and parts of
  /// units at its ends. All references must outlive the stage; `reducer` sums its gradients.
  Stage(const model::Model& model, Range cells, mesh::DeviceMesh& mesh, const StageOptions& options,
        GradientReducer& reducer, const TiedWeight& tied = {});
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  bool first() const { return cells_.begin == 0; }
  bool last() const { return cells_.end() == static_cast<std::int64_t>(model_.cells.size()); }
  /// What crosses the cut before (after) this stage, as this rank has it; empty at the model's
  /// ends.
  std::vector<plan::Crossing> inputs() const;
  std::vector<plan::Crossing> outputs() const;
  StageWeights& weights() { return weights_; }
  StageExperts& experts() { return experts_; }

  /// Bytes that reshard policy auto may keep; 0 until it is called, between steps. The same on all
  /// ranks.
  void set_reshard_budget(std::int64_t bytes);
  /// What a step of this many microbatches takes on the device in addition to activations and kept
  /// weights, as an upper bound: gradients that wait for their reduction, and what collectives read
  /// and write.
  std::int64_t scratch_bytes(int microbatches) const;
  /// Bytes of weights that policies keep between forward and backward.
  std::int64_t kept_bytes();
  /// Pinned host memory for activations.
  std::int64_t offload_bytes() const { return tape_.offload ? tape_.offload->host_bytes() : 0; }

  /// Announces how many microbatches the step has; GradientReducer::begin_step() goes with it.
  void begin_step(int microbatches);
  /// Before the forward of a microbatch, whose input may still be on its way: the first weights
  /// start to travel. `documents`: where packed ones begin; with no lists, sequences are whole
  /// texts. Known until the next begin_step(), for whatever is recomputed.
  void begin_forward(int microbatch, Documents documents);
  /// The same before backward(); what its first unit keeps in host memory comes back.
  void begin_backward(int microbatch);
  /// One microbatch through all units; `loss` on the last stage only. The tape keeps what backward
  /// needs.
  StagePass forward(int microbatch, const model::Flow& in, const LossInput* loss);
  /// Gradients of outputs() in (empty on the last stage), of inputs() out.
  model::Flow backward(int microbatch, model::Flow gradients, Backward what = Backward::whole);
  /// The rest of backward(..., Backward::inputs): together they give the bits of Backward::whole.
  void backward_weights(int microbatch);

  /// Forward without tape or loss, for generation.
  model::Flow infer(const model::Flow& in, const model::CellContext& context);
  /// forward() without a tape, for evaluation: the same token losses and no `loss`, and nothing is
  /// left but gathered weights, which StageWeights::end_step() frees. Experts' loads do not count.
  StagePass evaluate(int microbatch, const model::Flow& in, const LossInput* loss);

  /// Called in forward and backward where much memory is allocated: after each unit's pass. Null:
  /// nothing is called.
  void on_high_water(std::function<void()> look) { look_ = std::move(look); }
  /// Where autograd functions of this stage's cells may leave gradients of weights for
  /// backward_weights().
  WeightGradients& weight_gradients() { return weight_gradients_; }

 private:
  friend class StageForward;
  using PassKey = std::pair<int, std::size_t>;  ///< microbatch, unit
  /// What backward left for later, of one unit.
  struct Owed {
    WeightGradients::Work work;
    std::vector<std::vector<at::Tensor>> gradients;  ///< that the leaves of its groups have already
  };
  /// What backward needs of earlier passes.
  struct Tape {
    std::map<PassKey, TapeEntry> passes;
    std::map<PassKey, Owed> owed;
    std::map<int, std::shared_ptr<const PackedDocuments>> documents;  ///< by microbatch
    std::optional<ActivationOffload> offload;                         ///< of blocks
  };
  StagePass pass(const model::Flow& in, const model::CellContext& context, const LossInput* loss);
  void gather_for_forward(std::size_t unit);
  void gather_from(std::size_t unit);
  void gather_down_from(std::size_t unit);
  ContextOperations operations_of(int microbatch) const;
  model::CellContext context_with(const model::Operations& operations) const;
  void add_units();
  TensorParallel tensor_parallel();
  std::vector<plan::Crossing> crossings(std::int64_t cell) const;
  void check_patterns() const;
  void resolve_policies(std::int64_t budget_bytes);
  comm::Communicator& neighbours(int ranks);
  comm::Communicator* expert_neighbours(int ranks);
  void reshard(UnitState& state);
  void close_budget();
  void fetch_for_backward(const TapeEntry& entry, int microbatch, std::size_t unit);
  void fetch(int microbatch, std::size_t unit);
  Owed take_owed(const Unit& unit);

  const model::Model& model_;
  Range cells_;
  mesh::DeviceMesh& mesh_;
  const StageOptions& options_;
  StageWeights weights_;
  StageExperts experts_;
  GradientReducer& reducer_;
  RecomputeBudget recompute_;
  std::vector<UnitState> units_;
  WeightGradients weight_gradients_;
  RoundedWeights rounded_;
  LinearOperations operations_{model::plain_operations(), rounded_, weight_gradients_};
  Tape tape_;
  model::Angles angles_;  ///< of the positions that this rank has of each sequence
  std::function<void()> look_;
};

}  // namespace tessera::parallel
