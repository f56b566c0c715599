// SPDX-License-Identifier: Apache-2.0
#include "tessera/parallel/gradient_norm.hpp"

#include <cmath>
#include <limits>

#include "tessera/kernels/elementwise.hpp"
#include "tessera/kernels/exact_sum.hpp"

namespace tessera::parallel {
namespace {

double fast_sum(const Params& params, comm::Communicator& control) {
  double sum = 0;
  for (const ShardedParam* param : params)
    if (param->place.counted() && param->gradient.numel() > 0)
      sum += kernels::sum_of_squares(param->gradient);
  return comm::all_reduce_scalar(control, sum);
}

double exact_sum(const Params& params, comm::Communicator& control) {
  kernels::ExactSum sum;
  for (const ShardedParam* param : params)
    if (param->place.counted() && param->gradient.numel() > 0) sum.add_squares(param->gradient);
  std::array<std::int64_t, kernels::ExactSum::word_count> words;
  std::ranges::copy(sum.words(), words.begin());
  control.all_reduce({words.data(), static_cast<std::int64_t>(words.size()), DType::i64}).wait();
  sum.set_words(words);
  return sum.value();
}

/// The slow path, taken when the norm is not finite: looks at each parameter by itself.
std::string find_nonfinite(const Params& params, comm::Communicator& control) {
  std::string found;
  for (const ShardedParam* param : params) {
    if (param->gradient.isfinite().all().item<bool>()) continue;
    found = param->spec->fqn + " (rank " + std::to_string(control.rank()) + ")";
    break;
  }
  for (const std::string& text : comm::all_gather_strings(control, found))
    if (!text.empty()) return text;
  return "the sum of squares alone: it overflows";
}

}  // namespace

GradientNorm gradient_norm(const Params& trained, comm::Communicator& control, bool exact) {
  GradientNorm result;
  result.norm = std::sqrt(exact ? exact_sum(trained, control) : fast_sum(trained, control));
  if (std::isfinite(result.norm)) return result;
  result.norm = std::numeric_limits<double>::quiet_NaN();
  result.first_nonfinite = find_nonfinite(trained, control);
  return result;
}

}  // namespace tessera::parallel
