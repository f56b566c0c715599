// SPDX-License-Identifier: Apache-2.0
// A sample is a pure function of its global number: no state, no order, any rank may read any of
// them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tessera/base/shard.hpp"

namespace tessera::data {

/// Where a sample comes from.
struct SampleOrigin {
  std::string source;            ///< its name in a mixture; empty for a source by itself
  std::filesystem::path file;    ///< that holds it
  std::int64_t sample = 0;       ///< its number among those of the source
  std::int64_t epoch = 0;        ///< how often the source was read before
  std::int64_t window = 0;       ///< among those of the source
  std::int64_t first_token = 0;  ///< of the window in the file
};

/// What a part of a mixture gave.
struct SourceShare {
  std::string name;
  std::int64_t samples = 0;
  double epochs = 0;  ///< samples over those of one epoch
};

/// Where training samples come from. Thread-safe.
struct SampleSource {
  virtual ~SampleSource() = default;
  /// Tokens of one sample.
  virtual std::int64_t seq_len() const = 0;
  /// Samples there are; empty when they never end.
  virtual std::optional<std::int64_t> sample_limit() const = 0;
  /// Fills inputs[t] and labels[t] (the token after inputs[t], or -100 = ignored), seq_len() of
  /// each. Throws Error(data) for a sample at or beyond sample_limit().
  virtual void read(std::int64_t sample, std::span<std::int32_t> inputs,
                    std::span<std::int32_t> labels) const = 0;
  /// The same for some positions of it; an empty span is not wanted. What is not asked for need not
  /// be read.
  virtual void read_part(std::int64_t sample, Range positions, std::span<std::int32_t> inputs,
                         std::span<std::int32_t> labels) const;
  /// Where in inputs() a document begins, ascending from 0, for a source that knows its documents;
  /// empty for others.
  virtual std::vector<std::int64_t> document_starts(std::int64_t) const { return {}; }
  /// Empty for a source that does not know.
  virtual std::optional<SampleOrigin> origin(std::int64_t) const { return std::nullopt; }
  /// A word that is another one, but for accidents of 1 in 2^64, where any sample is another one:
  /// by the tokens' hashes, their order and lengths. Empty for a source that does not know.
  virtual std::string identity() const { return {}; }
  /// Tokenizer::content_hash() of what made the tokens; 0 for a source that does not know.
  virtual std::uint64_t tokenizer_hash() const { return 0; }
  /// What each part gave of the samples below `sample`; empty for a source of one part.
  virtual std::vector<SourceShare> shares(std::int64_t) const { return {}; }
};

}  // namespace tessera::data
