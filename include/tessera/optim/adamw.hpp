// SPDX-License-Identifier: Apache-2.0
// AdamW and Adam over the parameters of one rank: shards of any shape, one fused sweep for all that
// lie one after the other in memory.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "tessera/base/box.hpp"

namespace tessera::optim {

struct AdamWOptions {
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  bool coupled_decay = false;  ///< Adam: weight decay is added to the gradient
  /// Rounds results in bf16 at random by this seed (kernels::StochasticRounding), not to nearest.
  std::optional<std::uint64_t> rounding_seed = {};
};

/// What the optimizer keeps of one parameter: the shard of this rank. All tensors have one shape
/// and device, contiguous.
struct ParamState {
  std::string fqn;
  at::Tensor param;       ///< master weights, f64, f32 or bf16
  at::Tensor grad;        ///< f64 with param, else f32 or bf16
  at::Tensor exp_avg;     ///< first moment, f64 with param, else f32 or bf16
  at::Tensor exp_avg_sq;  ///< second moment, dtype of exp_avg
  double weight_decay = 0.0;
  /// undefined, or bf16 where param is f32: receives the new weights rounded, in the same sweep
  at::Tensor compute_copy = {};
  Shape whole = {};  ///< shape of the whole parameter, for AdamWOptions::rounding_seed
  Box box = {};      ///< what the shard holds of it, likewise
};

/// PyTorch's AdamW to the letter (decoupled decay first, bias correction, eps outside the root), or
/// its Adam; see kernels/adamw.hpp.
class AdamW {
 public:
  /// Throws Error(usage) unless 0 <= beta < 1 and eps >= 0.
  explicit AdamW(const AdamWOptions& options);

  /// Update number `t`, from 1 (the t of the bias correction), of every parameter with learning
  /// rate lr; gradients are read times clip_coefficient and left as they are. An empty
  /// shard is skipped. Random bits are those of the seed, `t`, and the parameter's name.
  void step(std::span<const ParamState> params, double lr, std::int64_t t,
            double clip_coefficient = 1.0) const;

  const AdamWOptions& options() const { return options_; }

 private:
  bool rounds_at_random(const ParamState& state) const;

  AdamWOptions options_;
};

}  // namespace tessera::optim
