// SPDX-License-Identifier: Apache-2.0
// A source that ends, made to fit whole batches and longer sequences: what is added is ignored by
// the loss.
#pragma once

#include "tessera/data/sample_source.hpp"

namespace tessera::data {

/// The first `samples` of `source`, and after them samples without a label that counts. Each is
/// `seq_len` >= that of the source long: after the source's tokens come some that no label refers
/// to, and that no earlier token attends to.
class PaddedSource final : public SampleSource {
 public:
  /// `source` must outlive this.
  PaddedSource(const SampleSource& source, std::int64_t samples, std::int64_t seq_len);

  std::int64_t seq_len() const override { return seq_len_; }
  std::optional<std::int64_t> sample_limit() const override { return std::nullopt; }
  void read(std::int64_t sample, std::span<std::int32_t> inputs,
            std::span<std::int32_t> labels) const override;
  void read_part(std::int64_t sample, Range positions, std::span<std::int32_t> inputs,
                 std::span<std::int32_t> labels) const override;
  std::vector<std::int64_t> document_starts(std::int64_t sample) const override;

 private:
  const SampleSource& source_;
  std::int64_t samples_, seq_len_;
};

}  // namespace tessera::data
