// SPDX-License-Identifier: Apache-2.0
// Samples that are windows of token files.
#pragma once

#include <cstdint>
#include <vector>

#include "tessera/data/sample_source.hpp"
#include "tessera/data/token_file.hpp"

namespace tessera::data {

/// A run of tokens of a file.
struct TokenRange {
  TokenFile file;
  Range tokens;
};

/// What is trained on and what is held out of the files of a source.
struct HeldOut {
  std::vector<TokenRange> training, held_out;
};

/// Holds the last windows of each file out. Of W windows of seq_len over all files, `share` (0 <=
/// share < 1) x W are held out, rounded down: those of file f are floor(share x W_f) - floor(share
/// x W_f-1), W_f being the windows up to and with file f. No label of one part is a label of the
/// other. With share 0 all is trained on. Throws Error(data) when a part would have no window.
HeldOut hold_out(const std::vector<TokenFile>& files, std::int64_t seq_len, double share);

/// Windows of seq_len + 1 tokens of runs of tokens, one every seq_len tokens; none goes from one
/// run into the next. Sample n is window p(n mod windows) of epoch e = n / windows, with p a
/// bijection keyed by (seed, e): each epoch visits every window once. In order, sample n is window
/// n, and there is one epoch.
class WindowSource final : public SampleSource {
 public:
  enum class Order : std::uint8_t { shuffled, as_they_come };
  /// Throws Error(data) when the runs together have no window.
  WindowSource(std::vector<TokenRange> runs, std::int64_t seq_len, std::uint64_t seed,
               Order order = Order::shuffled);
  /// All of one file, shuffled.
  WindowSource(TokenFile file, std::int64_t seq_len, std::uint64_t seed);

  std::int64_t seq_len() const override { return seq_len_; }
  std::optional<std::int64_t> sample_limit() const override;
  void read(std::int64_t sample, std::span<std::int32_t> inputs,
            std::span<std::int32_t> labels) const override;
  void read_part(std::int64_t sample, Range positions, std::span<std::int32_t> inputs,
                 std::span<std::int32_t> labels) const override;
  std::vector<std::int64_t> document_starts(std::int64_t sample) const override;
  std::optional<SampleOrigin> origin(std::int64_t sample) const override;
  std::string identity() const override;
  std::uint64_t tokenizer_hash() const override;

  /// Windows of one epoch.
  std::int64_t window_count() const { return ends_.back(); }
  const TokenFile& file() const { return runs_.front().file; }

 private:
  struct Place {
    const TokenFile& file;
    std::int64_t window, first_token;
  };
  Place place(std::int64_t sample) const;

  std::vector<TokenRange> runs_;
  std::vector<std::int64_t> ends_;  ///< windows of the runs up to and with each
  std::int64_t seq_len_;
  std::uint64_t seed_;
  Order order_;
};

}  // namespace tessera::data
