// SPDX-License-Identifier: Apache-2.0
// How rows travel to the ranks that hold their experts and back; on one rank they stay.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include <functional>

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

/// Rows on their way to this rank. Called once, and from then on they are there: it waits for them.
using Arrival = std::function<at::Tensor()>;

/// How this rank and others exchange tokens for their experts.
class TokenExchange {
 public:
  virtual ~TokenExchange() = default;
  /// Ranks that share the experts in equal parts, in order, and which one this is.
  virtual std::int64_t ranks() const { return 1; }
  virtual std::int64_t rank() const { return 0; }
  /// Whether a token goes once to each rank where it has experts; else once for each of them.
  virtual bool sends_once() const { return false; }

  /// Whether free rows follow those that each rank sends: all ranks send equally many.
  virtual bool has_free_rows() const { return false; }
  /// Whether the host must know how many rows travel.
  bool counts_on_host() const { return ranks() > 1 && !has_free_rows(); }
  /// With free rows: those that this rank sends, each rank as many.
  virtual FixedRows fixed_rows(const ChoiceCounts& /*of*/) const { return {}; }
  /// With free rows: notes where one of the `counts` is more than `most`.
  virtual void expect_fit(const at::Tensor& /*counts*/, std::int64_t /*most*/) const {}

  /// `sent` [ranks x n] int64, n numbers for each rank -> [ranks, n], those of each rank for this
  /// one. In host memory if counts_on_host().
  virtual at::Tensor counts(const at::Tensor& sent) const { return sent.unsqueeze(0); }
  /// Sends rows that lie rank by rank. Those of each rank for this one arrive, rank by rank.
  /// Differentiable.
  /// `out` and `in` [ranks x n] int64, in host memory: their sums over n are how many for and from
  /// each rank; undefined with free rows.
  virtual Arrival send(const at::Tensor& rows, const at::Tensor& /*out*/,
                       const at::Tensor& /*in*/) const {
    return [rows] { return rows; };
  }
  /// Called between the departure and the arrival of rows, by backward passes and by forwards that
  /// run whole: another pass may compute. Of a forward in pieces, the caller decides that.
  virtual void meanwhile() const {}
};

/// One rank's.
const TokenExchange& no_exchange();

}  // namespace tessera::model
