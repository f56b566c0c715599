// A sample is a pure function of its global number: no state, no order, any rank may read any of them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "tessera/data/keyed_permutation.hpp"
#include "tessera/data/token_file.hpp"

namespace tessera::data {

/// Where training samples come from. Thread-safe.
struct SampleSource {
  virtual ~SampleSource() = default;
  /// Tokens of one sample.
  virtual std::int64_t seq_len() const = 0;
  /// Samples there are; empty when they never end.
  virtual std::optional<std::int64_t> sample_limit() const = 0;
  /// Fills inputs[t] and labels[t] (the token after inputs[t], or -100 = ignored), seq_len() of each.
  /// Throws Error(data) for a sample at or beyond sample_limit().
  virtual void read(std::int64_t sample, std::span<std::int32_t> inputs, std::span<std::int32_t> labels) const = 0;
  /// Where in inputs() a document begins, ascending from 0, for a source that knows its documents; empty for others.
  virtual std::vector<std::int64_t> document_starts(std::int64_t) const { return {}; }
};

/// Windows of seq_len + 1 tokens of a token file, one every seq_len tokens. Sample n is window p(n mod windows) of
/// epoch e = n / windows, with p a bijection keyed by (seed, e): each epoch visits every window once.
class WindowSource final : public SampleSource {
 public:
  /// Throws Error(data) when the file holds fewer than seq_len + 1 tokens.
  WindowSource(TokenFile file, std::int64_t seq_len, std::uint64_t seed);

  std::int64_t seq_len() const override { return seq_len_; }
  std::optional<std::int64_t> sample_limit() const override { return std::nullopt; }
  void read(std::int64_t sample, std::span<std::int32_t> inputs, std::span<std::int32_t> labels) const override;
  std::vector<std::int64_t> document_starts(std::int64_t sample) const override;

  /// Windows of one epoch.
  std::int64_t window_count() const { return windows_; }
  /// First token of the window that `sample` reads.
  std::int64_t first_token(std::int64_t sample) const;
  const TokenFile& file() const { return file_; }

 private:
  TokenFile file_;
  std::int64_t seq_len_;
  std::uint64_t seed_;
  std::int64_t windows_;
};

/// Samples of a prepared token file. Throws Error(data) for anything else (see prepare_if_needed).
std::unique_ptr<SampleSource> open_samples(const std::filesystem::path& path, std::int64_t seq_len, std::uint64_t seed);

}  // namespace tessera::data
