// How rows travel to the ranks that hold their experts and back; on one rank they stay.
#pragma once

#include <torch/torch.h>

namespace tessera::model {

/// Differentiable. `sent` [experts] int64: rows of this rank for each expert, experts in order; `received` [ranks,
/// experts here]: rows of each rank for the experts here. Both in host memory.
class TokenExchange {
 public:
  virtual ~TokenExchange() = default;
  /// `received` from `sent`.
  virtual torch::Tensor counts(const torch::Tensor& sent) const { return sent.unsqueeze(0); }
  /// Rows sorted by expert -> rows for the experts here, rank by rank, each rank's sorted by expert.
  virtual torch::Tensor to_experts(const torch::Tensor& rows, const torch::Tensor& /*sent*/,
                                   const torch::Tensor& /*received*/) const {
    return rows;
  }
  /// The way back.
  virtual torch::Tensor from_experts(const torch::Tensor& rows, const torch::Tensor& /*sent*/,
                                     const torch::Tensor& /*received*/) const {
    return rows;
  }
};

/// One rank's.
const TokenExchange& no_exchange();

}  // namespace tessera::model
