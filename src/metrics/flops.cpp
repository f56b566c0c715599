// SPDX-License-Identifier: Apache-2.0
#include "tessera/metrics/flops.hpp"

#include <limits>

namespace tessera::metrics {

FlopsPerToken flops_per_token(const ModelSize& size) {
  const double matmul = 6.0 * static_cast<double>(size.parameters - size.embedding_parameters);
  const double attention = 6.0 * static_cast<double>(size.layers) *
                           static_cast<double>(size.heads) * static_cast<double>(size.head_dims) *
                           static_cast<double>(size.seq_tokens);
  return {matmul + attention, matmul + attention / 2};
}

double mfu(double tokens_per_second_per_device, double flops_per_token, const Peak& peak) {
  if (!(peak.flops > 0)) return std::numeric_limits<double>::quiet_NaN();
  return tokens_per_second_per_device * flops_per_token / peak.flops;
}

}  // namespace tessera::metrics
