// SPDX-License-Identifier: Apache-2.0
#include "tessera/data/mixture_source.hpp"

#include "content_hash.hpp"
#include "tessera/base/error.hpp"

namespace tessera::data {
namespace {

using Parts = std::vector<MixtureSource::Part>;

std::optional<std::int64_t> limit_of(const Parts& parts) {
  TESSERA_EXPECT(!parts.empty(), "a mixture of nothing");
  std::int64_t sum = 0;
  for (const auto& part : parts) {
    const auto limit = part.source->sample_limit();
    TESSERA_EXPECT(part.source->seq_len() == parts.front().source->seq_len() &&
                       limit.has_value() == parts.front().source->sample_limit().has_value(),
                   "part {} of a mixture is unlike the first", part.name);
    sum += limit.value_or(0);
  }
  if (!parts.front().source->sample_limit()) return std::nullopt;
  return sum;
}

Interleaving interleaving_of(const Parts& parts, std::uint64_t seed) {
  std::vector<double> weights;
  std::vector<std::int64_t> counts;
  for (const auto& part : parts) {
    weights.push_back(part.weight);
    if (const auto limit = part.source->sample_limit()) counts.push_back(*limit);
  }
  return counts.empty() ? Interleaving::of_shares(weights, seed) : Interleaving::of_counts(counts);
}

}  // namespace

MixtureSource::MixtureSource(std::vector<Part> parts, std::uint64_t seed)
    : parts_(std::move(parts)),
      seed_(seed),
      limit_(limit_of(parts_)),
      interleaving_(interleaving_of(parts_, seed)) {}

std::uint64_t MixtureSource::part_seed(std::uint64_t seed, const std::string& name) {
  return seed ^ content_hash("mixture " + name);
}

Interleaving::Place MixtureSource::place(std::int64_t sample) const {
  require(!limit_ || sample < *limit_, ExitCode::data,
          "the sources have {} samples; sample {} was asked for", limit_.value_or(0), sample);
  return interleaving_.at(sample);
}

void MixtureSource::read(std::int64_t sample, std::span<std::int32_t> inputs,
                         std::span<std::int32_t> labels) const {
  const auto [part, index] = place(sample);
  parts_[part].source->read(index, inputs, labels);
}

void MixtureSource::read_part(std::int64_t sample, Range positions, std::span<std::int32_t> inputs,
                              std::span<std::int32_t> labels) const {
  const auto [part, index] = place(sample);
  parts_[part].source->read_part(index, positions, inputs, labels);
}

std::vector<std::int64_t> MixtureSource::document_starts(std::int64_t sample) const {
  const auto [part, index] = place(sample);
  return parts_[part].source->document_starts(index);
}

std::optional<SampleOrigin> MixtureSource::origin(std::int64_t sample) const {
  const auto [part, index] = place(sample);
  auto origin = parts_[part].source->origin(index);
  if (origin) origin->source = parts_[part].name;
  return origin;
}

std::uint64_t MixtureSource::tokenizer_hash() const {
  return parts_.front().source->tokenizer_hash();
}

std::string MixtureSource::identity() const {
  std::string text = fmt::format("mixture {}", seed_);
  for (const Part& part : parts_) {
    const std::string own = part.source->identity();
    if (own.empty()) return {};
    text += " " + own;
  }
  return fmt::format("{:016x}", content_hash(text));
}

std::vector<SourceShare> MixtureSource::shares(std::int64_t sample) const {
  const std::vector<std::int64_t> counts = interleaving_.counts(sample);
  std::vector<SourceShare> shares;
  for (std::size_t i = 0; i < parts_.size(); ++i)
    shares.push_back(
        {parts_[i].name, counts[i],
         static_cast<double>(counts[i]) / static_cast<double>(parts_[i].epoch_samples)});
  return shares;
}

}  // namespace tessera::data
