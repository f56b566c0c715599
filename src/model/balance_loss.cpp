// SPDX-License-Identifier: Apache-2.0
#include "tessera/model/balance_loss.hpp"

namespace tessera::model {

using at::Tensor;

Tensor balance_terms(const Tensor& counts, const Tensor& probabilities, const Tensor& logits) {
  return at::cat({counts.to(logits.scalar_type()), probabilities.sum(0),
                  logits.logsumexp(-1).square().sum().view({1})});
}

Tensor balance_loss(const BalanceLoss& loss, const Tensor& slot, std::int64_t tokens,
                    const std::function<Tensor(const Tensor&)>& sum) {
  const double rows = static_cast<double>(tokens * loss.layers);
  const Tensor chosen = sum(slot.narrow(0, 0, loss.experts).detach()) / rows;
  const Tensor probability = slot.narrow(0, loss.experts, loss.experts) / rows;
  return loss.auxiliary * static_cast<double>(loss.experts) * (chosen * probability).sum() +
         loss.z * slot[2 * loss.experts] / rows;
}

}  // namespace tessera::model
