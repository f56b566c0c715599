// SPDX-License-Identifier: Apache-2.0
// Several sources as one, in fixed shares.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tessera/data/interleaving.hpp"
#include "tessera/data/sample_source.hpp"

namespace tessera::data {

/// Sample n is sample k of part s, with (s, k) = Interleaving::at(n): a pure function of (weights,
/// seed, n). Each part goes through its own epochs. Parts that end make a mixture that ends: their
/// samples in turns, each once, by counts.
class MixtureSource final : public SampleSource {
 public:
  struct Part {
    std::string name;  ///< each of its own
    std::unique_ptr<SampleSource> source;
    double weight = 1;           ///< above 0; of no account if parts end
    std::int64_t epoch_samples;  ///< of one epoch of the part
  };
  /// Parts of one sequence length, at least one, which all end or all continue. `seed` moves where
  /// each part begins.
  MixtureSource(std::vector<Part> parts, std::uint64_t seed);
  /// The seed of a part by its name, so that parts of one size do not go in step, whatever other
  /// parts there are.
  static std::uint64_t part_seed(std::uint64_t seed, const std::string& name);

  std::int64_t seq_len() const override { return parts_.front().source->seq_len(); }
  std::optional<std::int64_t> sample_limit() const override { return limit_; }
  void read(std::int64_t sample, std::span<std::int32_t> inputs,
            std::span<std::int32_t> labels) const override;
  void read_part(std::int64_t sample, Range positions, std::span<std::int32_t> inputs,
                 std::span<std::int32_t> labels) const override;
  std::vector<std::int64_t> document_starts(std::int64_t sample) const override;
  std::optional<SampleOrigin> origin(std::int64_t sample) const override;
  /// Whatever the weights are: a run may continue with others.
  std::string identity() const override;
  std::uint64_t tokenizer_hash() const override;
  std::vector<SourceShare> shares(std::int64_t sample) const override;

 private:
  Interleaving::Place place(std::int64_t sample) const;

  std::vector<Part> parts_;
  std::uint64_t seed_;
  std::optional<std::int64_t> limit_;
  Interleaving interleaving_;
};

}  // namespace tessera::data
