// SPDX-License-Identifier: Apache-2.0
// Expert parallelism: tokens travel to the ranks that hold their experts and back (GShard,
// https://arxiv.org/abs/2006.16668), each to as many as it chose, none dropped.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "tessera/comm/communicator.hpp"
#include "tessera/model/token_exchange.hpp"
#include "tessera/plan/expert_rows.hpp"

namespace tessera::parallel {

/// Rank r of `ep` holds experts [r E / ep, (r + 1) E / ep). Rows travel where they are; backward
/// sends gradients the opposite way. Either as many rows travel as were chosen, and counts in host
/// memory before them, or a fixed number, of which the host need not know how many are free.
class ExpertExchange final : public model::TokenExchange {
 public:
  ExpertExchange(comm::Communicator& ep, const plan::ExpertRows& rows, at::Device device);

  /// Whether the passes to come send fixed numbers of rows, where there is a capacity.
  void send_fixed(bool fixed) { fixed_ = fixed && rows_.capacity > 0; }
  /// [1] int64, on the device: how often there were more rows for a rank than a fixed number. Such
  /// passes compute nothing of use. In one place for all steps: graphs write it.
  const at::Tensor& overflows() const { return overflows_; }

  std::int64_t ranks() const override { return ep_.size(); }
  std::int64_t rank() const override { return ep_.rank(); }
  bool has_free_rows() const override { return fixed_; }
  bool sends_once() const override { return rows_.once; }
  model::FixedRows fixed_rows(const model::ChoiceCounts& of) const override;
  void expect_fit(const at::Tensor& counts, std::int64_t most) const override;
  at::Tensor counts(const at::Tensor& sent) const override;
  model::Arrival send(const at::Tensor& rows, const at::Tensor& out,
                      const at::Tensor& in) const override;
  void meanwhile() const override {
    if (others_) others_();
  }
  /// What meanwhile() calls from now on, in forward and backward; empty: nothing.
  void let_compute(std::function<void()> others) { others_ = std::move(others); }

 private:
  comm::Communicator& ep_;
  plan::ExpertRows rows_;
  bool fixed_ = false;
  at::Tensor overflows_;
  std::function<void()> others_;
};

}  // namespace tessera::parallel
