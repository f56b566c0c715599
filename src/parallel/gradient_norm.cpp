// SPDX-License-Identifier: Apache-2.0
#include "tessera/parallel/gradient_norm.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "tessera/kernels/exact_sum.hpp"
#include "tessera/kernels/neighbours.hpp"
#include "tessera/kernels/square_sums.hpp"

namespace tessera::parallel {
namespace {

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

/// Those that are not empty, and of which this rank's copy counts or does not.
std::vector<at::Tensor> gradients_of(const Params& params, bool counted) {
  std::vector<at::Tensor> gradients;
  for (const ShardedParam* param : params)
    if (param->place.counted() == counted && param->gradient.numel() > 0)
      gradients.push_back(param->gradient);
  return gradients;
}

}  // namespace

SquaredGradients::SquaredGradients(Params trained, bool exact)
    : trained_(std::move(trained)), exact_(exact) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> sums;
  const auto square = exact ? &kernels::exact_squares : &kernels::block_squares;
  const auto append = [&](const std::vector<at::Tensor>& gradients) {
    kernels::for_lines(std::span(gradients), &kernels::follows,
                       [&](std::span<const at::Tensor> line) {
                         std::int64_t elements = 0;
                         for (const at::Tensor& each : line) elements += each.numel();
                         sums.push_back(square(kernels::line_from(line.front(), elements)));
                         sizes_.push_back(sums.back().numel());
                       });
  };
  append(gradients_of(trained_, true));
  counted_ = sizes_.size();
  append(gradients_of(trained_, false));
  if (!sums.empty()) sums_ = kernels::HostCopy(at::cat(sums));
}

double SquaredGradients::fast_sum(comm::Communicator& control) const {
  double sum = 0;
  const at::Tensor& blocks = sums_.wait();
  const double* block = blocks.defined() ? blocks.const_data_ptr<double>() : nullptr;
  for (std::size_t line = 0; line < sizes_.size(); ++line) {
    double of_line = 0;
    for (std::int64_t i = 0; i < sizes_[line]; ++i) of_line += *block++;
    sum += line < counted_ ? of_line : 0 * of_line;  // NaN if it is not finite
  }
  return comm::all_reduce_scalar(control, sum);
}

double SquaredGradients::exact_sum(comm::Communicator& control) const {
  using Words = std::span<const std::int64_t, kernels::ExactSum::word_count>;
  kernels::ExactSum sum;
  const at::Tensor& all = sums_.wait();
  for (std::size_t i = 0; i < sizes_.size(); ++i) {
    kernels::ExactSum of_line;
    of_line.set_words(Words(all.const_data_ptr<std::int64_t>() + i * Words::extent, Words::extent));
    if (i < counted_)
      sum.merge(of_line);
    else if (of_line.nonfinite_count() > 0)
      sum.add(std::numeric_limits<double>::quiet_NaN());
  }
  std::array<std::int64_t, Words::extent> words;
  std::ranges::copy(sum.words(), words.begin());
  control.all_reduce({words.data(), std::ssize(words), DType::i64}).wait();
  sum.set_words(words);
  return sum.value();
}

GradientNorm SquaredGradients::norm(comm::Communicator& control) const {
  GradientNorm result;
  result.norm = std::sqrt(exact_ ? exact_sum(control) : fast_sum(control));
  if (std::isfinite(result.norm)) return result;
  result.norm = std::numeric_limits<double>::quiet_NaN();
  result.first_nonfinite = find_nonfinite(trained_, control);
  return result;
}

}  // namespace tessera::parallel
