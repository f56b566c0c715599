// SPDX-License-Identifier: Apache-2.0
// The host's kernels of a transformer block, on tensors; contracts as in backend.hpp.
#pragma once

#include "backend.hpp"

namespace tessera::kernels::host {

NormValue rms_norm(const at::Tensor& x, const at::Tensor& residual, const at::Tensor& weight,
                   double eps);
std::pair<at::Tensor, at::Tensor> rms_norm_backward(const at::Tensor& dy, const at::Tensor& dsum,
                                                    const at::Tensor& x, const at::Tensor& weight,
                                                    const at::Tensor& rstd);
void rope(std::span<const RopePart> parts, const at::Tensor& cos, const at::Tensor& sin,
          bool inverse);
void row_max(const RowsOf& logits, const at::Tensor& max);
void sum_exp(const RowsOf& logits, const at::Tensor& max, const at::Tensor& labels,
             std::int64_t vocab_begin, const SumExpAndTarget& out);
void softmax_gradient(const RowsOf& logits, const at::Tensor& max, const at::Tensor& sum_exp,
                      const at::Tensor& labels, std::int64_t vocab_begin, double scale);

}  // namespace tessera::kernels::host
