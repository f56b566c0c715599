// SPDX-License-Identifier: Apache-2.0
// AdamW over the parameters of one rank: shards of any shape, one fused sweep each.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include <cstdint>
#include <span>
#include <string>

namespace tessera::optim {

struct AdamWOptions {
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
};

/// What the optimizer keeps of one parameter: the shard of this rank. All tensors have one shape
/// and device, contiguous.
struct ParamState {
  std::string fqn;
  at::Tensor param;       ///< master weights, f32 or f64
  at::Tensor grad;        ///< param's dtype, or bf16
  at::Tensor exp_avg;     ///< first moment, param's dtype or bf16
  at::Tensor exp_avg_sq;  ///< second moment, dtype of exp_avg
  double weight_decay = 0.0;
  double lr_scale = 1.0;  ///< multiplies the step's learning rate
  /// undefined, or bf16: receives the new weights rounded, in the same sweep
  at::Tensor compute_copy = {};
};

/// PyTorch's AdamW to the letter (decoupled decay first, bias correction, eps outside the root);
/// see kernels/adamw.hpp.
class AdamW {
 public:
  /// Throws Error(usage) unless 0 <= beta < 1 and eps >= 0.
  explicit AdamW(const AdamWOptions& options);

  /// Update number `t`, from 1 (the t of the bias correction), of every parameter with learning
  /// rate lr * lr_scale; gradients are read times clip_coefficient and left as they are. An empty
  /// shard is skipped.
  void step(std::span<ParamState> params, double lr, std::int64_t t,
            double clip_coefficient = 1.0) const;

  const AdamWOptions& options() const { return options_; }

 private:
  AdamWOptions options_;
};

}  // namespace tessera::optim
