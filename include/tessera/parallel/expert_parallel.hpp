// SPDX-License-Identifier: Apache-2.0
// Expert parallelism: tokens travel to the ranks that hold their experts and back (GShard,
// https://arxiv.org/abs/2006.16668), each to as many as it chose, none dropped.
#pragma once

#include "tessera/comm/communicator.hpp"
#include "tessera/model/token_exchange.hpp"

namespace tessera::parallel {

/// Rank r of `ep` holds experts [r E / ep, (r + 1) E / ep). Counts travel in host memory, rows
/// where they are; backward sends gradients the opposite way.
class ExpertExchange final : public model::TokenExchange {
 public:
  explicit ExpertExchange(comm::Communicator& ep) : ep_(ep) {}
  bool sends() const override { return true; }
  at::Tensor counts(const at::Tensor& sent) const override;
  at::Tensor to_experts(const at::Tensor& rows, const at::Tensor& sent,
                        const at::Tensor& received) const override;
  at::Tensor from_experts(const at::Tensor& rows, const at::Tensor& sent,
                          const at::Tensor& received) const override;

 private:
  comm::Communicator& ep_;
};

}  // namespace tessera::parallel
