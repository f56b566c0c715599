// SPDX-License-Identifier: Apache-2.0
// What a stage does for mixtures of experts: the exchange of tokens, how often each expert was
// chosen, and how that is evened out.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include <optional>
#include <vector>

#include "tessera/mesh/device_mesh.hpp"
#include "tessera/model/cell.hpp"
#include "tessera/model_spec/model_spec.hpp"
#include "tessera/parallel/expert_parallel.hpp"

namespace tessera::parallel {

class StageExperts {
 public:
  /// Of cells [cells.begin, cells.end()) of `model`. Model and mesh must outlive this.
  StageExperts(const model::ModelSpec& model, Range cells, mesh::DeviceMesh& mesh,
               at::Device device);

  /// Null where each rank has all experts.
  const model::TokenExchange* exchange() const { return exchange_ ? &*exchange_ : nullptr; }
  /// Counts of this step, by mixture of the model; undefined for other stages'.
  model::ExpertLoads& loads() { return loads_; }
  /// Tokens that each expert got in this step, summed over all ranks of the stage; evens the loads
  /// out by the biases of the choice in `buffers` if `update`, and forgets the counts. Collective
  /// over the ranks of the stage.
  std::vector<at::Tensor> balance(bool update, std::vector<at::Tensor>& buffers);

  /// A step of this many microbatches begins on this rank.
  void begin_step(int microbatches);
  /// LossInput::balance_scale of the step.
  double loss_scale() const { return loss_scale_; }
  void add_loss(double part) { loss_ += part; }
  /// This rank's part of the step's balance loss; other ranks hold the rest.
  double loss() const { return loss_; }

 private:
  const model::ModelSpec& model_;
  mesh::DeviceMesh& mesh_;
  std::optional<ExpertExchange> exchange_;
  model::ExpertLoads loads_;
  double loss_ = 0, loss_scale_ = 1;
};

}  // namespace tessera::parallel
