// SPDX-License-Identifier: Apache-2.0
// How rows travel to the ranks that hold their experts and back; on one rank they stay.
#pragma once

#include "tessera/kernels/tensor.hpp"

namespace tessera::model {

/// Differentiable. `sent` [experts] int64: rows of this rank for each expert, experts in order;
/// `received` [ranks, experts here]: rows of each rank for the experts here. Both in host memory
/// where rows are sent.
class TokenExchange {
 public:
  virtual ~TokenExchange() = default;
  /// Whether rows go to other ranks.
  virtual bool sends() const { return false; }
  /// `received` from `sent`.
  virtual at::Tensor counts(const at::Tensor& sent) const { return sent.unsqueeze(0); }
  /// Rows sorted by expert -> rows for the experts here, rank by rank, each rank's sorted by
  /// expert.
  virtual at::Tensor to_experts(const at::Tensor& rows, const at::Tensor& /*sent*/,
                                const at::Tensor& /*received*/) const {
    return rows;
  }
  /// The way back.
  virtual at::Tensor from_experts(const at::Tensor& rows, const at::Tensor& /*sent*/,
                                  const at::Tensor& /*received*/) const {
    return rows;
  }
};

/// One rank's.
const TokenExchange& no_exchange();

}  // namespace tessera::model
