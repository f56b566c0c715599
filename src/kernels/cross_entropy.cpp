// SPDX-License-Identifier: Apache-2.0
#include "tessera/kernels/cross_entropy.hpp"

#include "backend.hpp"
#include "tessera/base/error.hpp"
#include "tessera/kernels/accumulation_type.hpp"

namespace tessera::kernels {
namespace {

void check_logits(const at::Tensor& logits) {
  TESSERA_EXPECT(
      logits.dim() == 2 && logits.size(1) > 0 && (logits.size(0) <= 1 || logits.stride(1) == 1),
      "logits must be [N, V] with contiguous rows");
}

/// int64 and contiguous, as the kernels read them.
at::Tensor checked_labels(const at::Tensor& labels, std::int64_t rows) {
  TESSERA_EXPECT(labels.dim() == 1 && labels.size(0) == rows, "{} labels for {} rows of logits",
                 labels.numel(), rows);
  return labels.to(at::kLong).contiguous();
}

at::Tensor checked_statistic(const at::Tensor& values, const at::Tensor& logits) {
  TESSERA_EXPECT(values.dim() == 1 && values.size(0) == logits.size(0) &&
                     values.scalar_type() == accumulation_type(logits),
                 "a row statistic must be [N] {}", c10::toString(accumulation_type(logits)));
  return values.contiguous();
}

at::Tensor empty_statistic(const at::Tensor& logits) {
  return at::empty({logits.size(0)}, logits.options().dtype(accumulation_type(logits)));
}

}  // namespace

at::Tensor row_max(const at::Tensor& logits) {
  const at::NoGradGuard no_grad;
  check_logits(logits);
  at::Tensor max = empty_statistic(logits);
  backend_of(logits).row_max(rows_of(logits), max);
  return max;
}

SumExpAndTarget sum_exp_and_target(const at::Tensor& logits, const at::Tensor& row_max,
                                   const at::Tensor& labels, std::int64_t vocab_begin) {
  const at::NoGradGuard no_grad;
  check_logits(logits);
  SumExpAndTarget out{empty_statistic(logits), empty_statistic(logits)};
  backend_of(logits).sum_exp(rows_of(logits), checked_statistic(row_max, logits),
                             checked_labels(labels, logits.size(0)), vocab_begin, out);
  return out;
}

void softmax_gradient_(at::Tensor& logits, const at::Tensor& row_max, const at::Tensor& sum_exp,
                       const at::Tensor& labels, std::int64_t vocab_begin, double scale) {
  const at::NoGradGuard no_grad;
  check_logits(logits);
  backend_of(logits).softmax_gradient(rows_of(logits), checked_statistic(row_max, logits),
                                      checked_statistic(sum_exp, logits),
                                      checked_labels(labels, logits.size(0)), vocab_begin, scale);
}

}  // namespace tessera::kernels
