// SPDX-License-Identifier: Apache-2.0
// Data for steps whose result nobody reads.
#pragma once

#include "tessera/data/sample_source.hpp"

namespace tessera::train {

/// Samples of one document with tokens at random, whose labels all count.
class DrawnTokens final : public data::SampleSource {
 public:
  DrawnTokens(std::int64_t seq_len, std::int64_t vocab) : seq_len_(seq_len), vocab_(vocab) {}

  std::int64_t seq_len() const override { return seq_len_; }
  std::optional<std::int64_t> sample_limit() const override { return std::nullopt; }
  void read(std::int64_t sample, std::span<std::int32_t> inputs,
            std::span<std::int32_t> labels) const override;
  std::vector<std::int64_t> document_starts(std::int64_t sample) const override;

 private:
  std::int64_t seq_len_, vocab_;
};

}  // namespace tessera::train
