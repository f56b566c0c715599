// SPDX-License-Identifier: Apache-2.0
#include "loss_sums.hpp"

#include <algorithm>
#include <iterator>

#include "tessera/plan/step_traffic.hpp"

namespace tessera::train {

at::Tensor joined(const std::vector<at::Tensor>& tensors) {
  return tensors.empty() ? at::Tensor() : at::cat(tensors);
}

LossSums::LossSums(const data::SampleSource& source) : source_(source) {
  for (const data::SourceShare& share : source.shares(0)) names_.push_back(share.name);
  losses_.resize(std::max<std::size_t>(1, names_.size()));
  tokens_.resize(losses_.size());
}

std::size_t LossSums::part_of(std::int64_t sample) const {
  if (names_.empty()) return 0;
  const auto origin = source_.origin(sample);
  const auto found = std::ranges::find(names_, origin ? origin->source : "");
  return found == names_.end() ? 0 : static_cast<std::size_t>(found - names_.begin());
}

void LossSums::add(const Rows& rows, const plan::BatchPlan& plan, const at::Tensor& token_losses,
                   std::int64_t first, std::int64_t end) {
  if (!token_losses.defined()) return;
  const at::Tensor losses = token_losses.to(at::kCPU, at::kDouble);
  const std::span<const double> values(losses.data_ptr<double>(),
                                       static_cast<std::size_t>(losses.numel()));
  const auto each = static_cast<std::size_t>(plan.cut.positions());
  for (std::size_t row = 0; row < static_cast<std::size_t>(plan.rows); ++row) {
    const std::int64_t sample = first + static_cast<std::int64_t>(row);
    if (sample >= end) break;
    const std::size_t part = part_of(sample);
    losses_[part].add(values.subspan(row * each, each));
    tokens_[part] += std::ranges::count_if(std::span(rows.labels).subspan(row * each, each),
                                           [](std::int32_t label) { return label != -100; });
  }
}

StepVotes LossSums::reduce(comm::Communicator& control, const StepVotes& votes) {
  constexpr std::size_t kWords = kernels::ExactSum::word_count, kVotes = StepVotes::kCounts;
  static_assert(kWords == plan::kSumWords && kVotes == plan::kVotes);
  std::vector<std::int64_t> words;
  std::ranges::copy(votes.counts(), std::back_inserter(words));
  std::ranges::copy(tokens_, std::back_inserter(words));
  for (kernels::ExactSum& sum : losses_) std::ranges::copy(sum.words(), std::back_inserter(words));
  control.all_reduce({words.data(), std::ssize(words), DType::i64}).wait();
  std::copy_n(words.begin() + kVotes, tokens_.size(), tokens_.begin());
  const std::int64_t* at = words.data() + kVotes + tokens_.size();
  for (std::size_t i = 0; i < losses_.size(); ++i, at += kWords)
    losses_[i].set_words(std::span<const std::int64_t, kWords>(at, kWords));
  return StepVotes::from_counts(std::span<const std::int64_t, kVotes>(words.data(), kVotes));
}

double LossSums::mean(const kernels::ExactSum& sum, std::int64_t tokens) {
  return tokens > 0 ? sum.value() / static_cast<double>(tokens)
                    : std::numeric_limits<double>::quiet_NaN();
}

std::int64_t LossSums::tokens() const {
  std::int64_t sum = 0;
  for (const std::int64_t part : tokens_) sum += part;
  return sum;
}

double LossSums::loss() const {
  kernels::ExactSum all;
  for (const kernels::ExactSum& part : losses_) all.merge(part);
  return mean(all, tokens());
}

std::vector<std::pair<std::string, double>> LossSums::parts() const {
  std::vector<std::pair<std::string, double>> parts;
  for (std::size_t i = 0; i < names_.size(); ++i)
    parts.emplace_back(names_[i], mean(losses_[i], tokens_[i]));
  return parts;
}

}  // namespace tessera::train
