// SPDX-License-Identifier: Apache-2.0
// What a stage does for mixtures of experts: the exchange of tokens, how often each expert was
// chosen, and how that is evened out.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include <functional>
#include <optional>
#include <vector>

#include "tessera/mesh/device_mesh.hpp"
#include "tessera/model/cell.hpp"
#include "tessera/model_spec/model_spec.hpp"
#include "tessera/parallel/expert_parallel.hpp"

namespace tessera::parallel {

/// What a step has found of mixtures.
struct ExpertFigures {
  /// Tokens that each expert got, summed over the ranks of its stage, by mixture of the model;
  /// undefined where other ranks hold it.
  std::vector<at::Tensor> loads;
  /// This rank's parts of the balance loss, float64; other ranks hold the rest.
  std::vector<at::Tensor> losses;
};

class StageExperts {
 public:
  /// Of cells [cells.begin, cells.end()) of `model`. Model and mesh must outlive this.
  StageExperts(const model::ModelSpec& model, Range cells, mesh::DeviceMesh& mesh,
               at::Device device, const plan::ExpertRows& rows);

  /// Null where each rank has all experts.
  const model::TokenExchange* exchange() const { return exchange_ ? &*exchange_ : nullptr; }
  /// See ExpertExchange, where there is one.
  void send_fixed(bool fixed);
  /// See ExpertExchange, where there is one.
  void let_compute(std::function<void()> others) {
    if (exchange_) exchange_->let_compute(std::move(others));
  }
  /// Undefined without a capacity.
  at::Tensor overflows() const { return exchange_ ? exchange_->overflows() : at::Tensor(); }
  /// Forgets a step that overflowed.
  void forget_step();
  /// Counts of this step, by mixture of the model; undefined for other stages'.
  model::ExpertLoads& loads() { return loads_; }
  /// Tokens that each expert got in this step, summed over all ranks of the stage; forgets the
  /// counts. Collective over the ranks of the stage.
  std::vector<at::Tensor> take_loads();
  /// Evens such loads out by the biases of the choice in `buffers`.
  void balance(const std::vector<at::Tensor>& loads, std::vector<at::Tensor>& buffers) const;

  /// A step of this many microbatches begins on this rank.
  void begin_step(int microbatches);
  /// LossInput::balance_scale of the step.
  double loss_scale() const { return loss_scale_; }
  /// A microbatch's part of the balance loss; undefined: none.
  void add_loss(const at::Tensor& part);
  /// This rank's part of the step's balance loss, float64; other ranks hold the rest. Undefined: 0.
  const at::Tensor& loss() const { return loss_; }

 private:
  /// Views of counts of all experts of the stage, by mixture of the model; undefined for others'.
  std::vector<at::Tensor> by_mixture(const at::Tensor& counts) const;

  const model::ModelSpec& model_;
  mesh::DeviceMesh& mesh_;
  std::vector<int> mixtures_;  ///< of the stage
  std::optional<ExpertExchange> exchange_;
  at::Tensor counts_;         ///< of all experts of the stage, so that one sum serves them
  model::ExpertLoads loads_;  ///< views of these
  at::Tensor loss_;           ///< in one place for all steps: graphs write it
  double loss_scale_ = 1;
};

}  // namespace tessera::parallel
