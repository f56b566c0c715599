// SPDX-License-Identifier: Apache-2.0
#include "tessera/model/balance_loss.hpp"

#include "tessera/model/routing.hpp"

namespace tessera::model {

using at::Tensor;

Tensor balance_terms(const Tensor& chosen, const Tensor& probabilities, const Tensor& logits) {
  const Tensor counts = count_choices(chosen, logits.size(1)).to(logits.scalar_type());
  return at::cat({counts, probabilities.sum(0), logits.logsumexp(-1).square().sum().view({1})});
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
