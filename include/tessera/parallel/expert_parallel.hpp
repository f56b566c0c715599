// Expert parallelism: tokens travel to the ranks that hold their experts and back (GShard,
// https://arxiv.org/abs/2006.16668), each to as many as it chose, none dropped.
#pragma once

#include "tessera/comm/communicator.hpp"
#include "tessera/model/token_exchange.hpp"

namespace tessera::parallel {

/// Rank r of `ep` holds experts [r E / ep, (r + 1) E / ep). Counts travel in host memory, rows where they are; backward
/// sends gradients the opposite way.
class ExpertExchange final : public model::TokenExchange {
 public:
  explicit ExpertExchange(comm::Communicator& ep) : ep_(ep) {}
  torch::Tensor counts(const torch::Tensor& sent) const override;
  torch::Tensor to_experts(const torch::Tensor& rows, const torch::Tensor& sent,
                           const torch::Tensor& received) const override;
  torch::Tensor from_experts(const torch::Tensor& rows, const torch::Tensor& sent,
                             const torch::Tensor& received) const override;

 private:
  comm::Communicator& ep_;
};

}  // namespace tessera::parallel
