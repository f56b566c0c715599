// SPDX-License-Identifier: Apache-2.0
#include "tessera/data/window_source.hpp"

#include <algorithm>
#include <cmath>

#include "content_hash.hpp"
#include "tessera/base/error.hpp"
#include "tessera/data/keyed_permutation.hpp"

namespace tessera::data {
namespace {

std::int64_t windows_in(std::int64_t tokens, std::int64_t seq_len) {
  return std::max<std::int64_t>(0, (tokens - 1) / seq_len);
}

/// Positions of a sequence, and as many ids of each kind that is wanted.
void expect_inside(Range positions, std::int64_t seq_len, std::span<std::int32_t> inputs,
                   std::span<std::int32_t> labels) {
  const auto fits = [&](std::span<std::int32_t> ids) {
    return ids.empty() || std::ssize(ids) == positions.size;
  };
  TESSERA_EXPECT(positions.begin >= 0 && positions.size >= 0 && positions.end() <= seq_len &&
                     fits(inputs) && fits(labels),
                 "positions {} to {} of a sequence of {}", positions.begin, positions.end(),
                 seq_len);
}

}  // namespace

void SampleSource::read_part(std::int64_t sample, Range positions, std::span<std::int32_t> inputs,
                             std::span<std::int32_t> labels) const {
  expect_inside(positions, seq_len(), inputs, labels);
  std::vector<std::int32_t> all_inputs(static_cast<std::size_t>(seq_len())),
      all_labels(all_inputs.size());
  read(sample, all_inputs, all_labels);
  const auto copy = [&](const std::vector<std::int32_t>& from, std::span<std::int32_t> to) {
    std::copy_n(from.begin() + positions.begin, to.size(), to.begin());
  };
  copy(all_inputs, inputs);
  copy(all_labels, labels);
}

HeldOut hold_out(const std::vector<TokenFile>& files, std::int64_t seq_len, double share) {
  TESSERA_EXPECT(!files.empty() && seq_len >= 1, "{} files, and sequences of {} tokens",
                 files.size(), seq_len);
  HeldOut parts;
  std::int64_t before = 0, held_before = 0;
  for (const TokenFile& file : files) {
    const std::int64_t tokens = file.info().token_count, windows = windows_in(tokens, seq_len);
    before += windows;
    const auto held_so_far =
        static_cast<std::int64_t>(std::floor(share * static_cast<double>(before)));
    const std::int64_t held = std::min(windows, held_so_far - held_before);
    held_before = held_so_far;
    const std::int64_t cut = (windows - held) * seq_len;
    parts.training.push_back({file, {0, held > 0 ? cut + 1 : tokens}});
    if (held > 0) parts.held_out.push_back({file, {cut, tokens - cut}});
  }
  require(share == 0 || (held_before > 0 && held_before < before), ExitCode::data,
          "validation.split = {} selects, of the {} windows of {} + 1 tokens in '{}', {}; choose "
          "another "
          "validation.split, or add data",
          share, before, seq_len, files.front().path().string(),
          held_before == 0 ? "none" : "all of them");
  return parts;
}

WindowSource::WindowSource(std::vector<TokenRange> runs, std::int64_t seq_len, std::uint64_t seed,
                           Order order)
    : runs_(std::move(runs)), seq_len_(seq_len), seed_(seed), order_(order) {
  require(seq_len >= 1, ExitCode::usage,
          "a sequence length of {} makes no samples; set training.seq_len", seq_len);
  std::int64_t windows = 0, tokens = 0;
  for (const TokenRange& run : runs_) {
    ends_.push_back(windows += windows_in(run.tokens.size, seq_len));
    tokens += run.tokens.size;
  }
  require(
      windows >= 1, ExitCode::data,
      "'{}'{} has {} tokens, too few for one sample of {} + 1; add text or reduce training.seq_len",
      runs_.front().file.path().string(),
      runs_.size() > 1 ? fmt::format(" (and {} more)", runs_.size() - 1) : "", tokens, seq_len);
}

WindowSource::WindowSource(TokenFile file, std::int64_t seq_len, std::uint64_t seed)
    : WindowSource({{file, {0, file.info().token_count}}}, seq_len, seed) {}

std::optional<std::int64_t> WindowSource::sample_limit() const {
  if (order_ == Order::shuffled) return std::nullopt;
  return window_count();
}

WindowSource::Place WindowSource::place(std::int64_t sample) const {
  TESSERA_EXPECT(sample >= 0, "sample {}", sample);
  std::int64_t window = sample;
  if (order_ == Order::shuffled)
    window = KeyedPermutation(
        window_count(), seed_,
        static_cast<std::uint64_t>(sample / window_count()))(sample % window_count());
  require(window < window_count(), ExitCode::data, "'{}' has {} samples; sample {} was asked for",
          file().path().string(), window_count(), sample);
  const auto run =
      static_cast<std::size_t>(std::ranges::upper_bound(ends_, window) - ends_.begin());
  const std::int64_t within = window - (run == 0 ? 0 : ends_[run - 1]);
  return {runs_[run].file, window, runs_[run].tokens.begin + within * seq_len_};
}

void WindowSource::read(std::int64_t sample, std::span<std::int32_t> inputs,
                        std::span<std::int32_t> labels) const {
  const auto length = static_cast<std::size_t>(seq_len_);
  TESSERA_EXPECT(inputs.size() == length && labels.size() == length,
                 "{} inputs and {} labels for a sample of {}", inputs.size(), labels.size(),
                 seq_len_);
  read_part(sample, {0, seq_len_}, inputs, labels);
}

void WindowSource::read_part(std::int64_t sample, Range positions, std::span<std::int32_t> inputs,
                             std::span<std::int32_t> labels) const {
  expect_inside(positions, seq_len_, inputs, labels);
  const Place at = place(sample);
  at.file.read(at.first_token + positions.begin, inputs);
  at.file.read(at.first_token + positions.begin + 1, labels);
}

std::vector<std::int64_t> WindowSource::document_starts(std::int64_t sample) const {
  const auto [file, window, begin] = place(sample);
  std::vector<std::int64_t> starts;
  for (std::int64_t at = begin; at < begin + seq_len_;
       at = file.document(file.document_of(at)).end())
    starts.push_back(at - begin);
  return starts;
}

std::optional<SampleOrigin> WindowSource::origin(std::int64_t sample) const {
  const auto [file, window, first_token] = place(sample);
  return SampleOrigin{"", file.path(), sample, sample / window_count(), window, first_token};
}

std::uint64_t WindowSource::tokenizer_hash() const {
  return runs_.front().file.info().tokenizer_hash;
}

std::string WindowSource::identity() const {
  std::string text = fmt::format("windows {} {} {}", seq_len_, seed_, order_ == Order::shuffled);
  for (const auto& [file, tokens] : runs_)
    text += fmt::format(" {:x} {} {}", file.info().payload_hash, tokens.begin, tokens.size);
  return fmt::format("{:016x}", content_hash(text));
}

}  // namespace tessera::data
