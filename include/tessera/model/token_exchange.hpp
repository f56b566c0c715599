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

/// Of one rank, in one mixture.
struct ChoiceCounts {
  std::int64_t tokens, top_k, experts;
};

/// Numbers of rows where they are fixed.
struct FixedRows {
  std::int64_t choices = 0;  ///< for the experts of each rank
  std::int64_t tokens = 0;   ///< for each rank, where a token goes once to it
};

/// Differentiable. `sent` [experts] int64: rows of this rank for each expert, experts in order;
/// `received` [ranks, experts here]: rows of each rank for the experts here. Both are in host
/// memory if counts_on_host(). Where a token goes once to each rank: `sent` [ranks] and `received`
/// [ranks, 1] rows for and from each.
class TokenExchange {
 public:
  virtual ~TokenExchange() = default;
  /// Ranks that share the experts in equal parts, in order, and which one this is.
  virtual std::int64_t ranks() const { return 1; }
  virtual std::int64_t rank() const { return 0; }
  /// Whether free rows follow those that each rank sends: all ranks send equally many.
  virtual bool has_free_rows() const { return false; }
  /// Whether the host must know the counts.
  bool counts_on_host() const { return ranks() > 1 && !has_free_rows(); }

  /// Whether a token goes once to each rank where it has experts; else once for each of them.
  virtual bool sends_once() const { return false; }
  /// With free rows: those that this rank sends, each rank as many.
  virtual FixedRows fixed_rows(const ChoiceCounts& /*of*/) const { return {}; }
  /// With free rows: notes where one of the `counts` is more than `most`.
  virtual void expect_fit(const at::Tensor& /*counts*/, std::int64_t /*most*/) const {}

  /// `sorted` by expert, with free rows where there are any: of any choice, and at no place.
  virtual SentRows spaced(SentRows sorted, const at::Tensor& /*sent*/) const { return sorted; }
  /// `received` from `sent`, as many numbers for each rank: with free rows, counts of experts if
  /// each rank sends `rows`.
  virtual at::Tensor counts(const at::Tensor& sent, std::int64_t /*rows*/) const {
    return sent.unsqueeze(0);
  }
  /// Rows that lie rank by rank -> those of other ranks for this one, rank by rank.
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
