// SPDX-License-Identifier: Apache-2.0
// How rows travel to the ranks that hold their experts and back; on one rank they stay.
#pragma once

#include "tessera/kernels/tensor.hpp"

namespace tessera::model {

/// Rows that are sent, each that of a choice. T tokens choose K experts each.
struct SentRows {
  at::Tensor order;   ///< [R] the choice i, of token i / K, whose row it is
  at::Tensor places;  ///< [T, K] where each choice's row is
};

/// Differentiable. `sent` [experts] int64: rows of this rank for each expert, experts in order;
/// `received` [ranks, experts here]: rows of each rank for the experts here. Both are in host
/// memory if counts_on_host().
class TokenExchange {
 public:
  virtual ~TokenExchange() = default;
  /// Whether the host must know the counts.
  virtual bool counts_on_host() const { return false; }
  /// Whether free rows follow those that each rank sends: all ranks send equally many.
  virtual bool has_free_rows() const { return false; }
  /// `sorted` by expert, with free rows where there are any: of any choice, and at no place.
  virtual SentRows spaced(SentRows sorted, const at::Tensor& /*sent*/) const { return sorted; }
  /// `received` from `sent`, if each rank sends `rows`.
  virtual at::Tensor counts(const at::Tensor& sent, std::int64_t /*rows*/) const {
    return sent.unsqueeze(0);
  }
  /// Rows as spaced() has them -> rows for the experts here, rank by rank, each rank's sorted by
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
