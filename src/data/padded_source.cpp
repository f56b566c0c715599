// SPDX-License-Identifier: Apache-2.0
#include "tessera/data/padded_source.hpp"

#include <algorithm>

#include "tessera/base/error.hpp"

namespace tessera::data {

PaddedSource::PaddedSource(const SampleSource& source, std::int64_t samples, std::int64_t seq_len)
    : source_(source), samples_(samples), seq_len_(seq_len) {
  TESSERA_EXPECT(seq_len >= source.seq_len(), "sequences of {} made shorter: {}", source.seq_len(),
                 seq_len);
}

void PaddedSource::read(std::int64_t sample, std::span<std::int32_t> inputs,
                        std::span<std::int32_t> labels) const {
  read_part(sample, {0, seq_len_}, inputs, labels);
}

void PaddedSource::read_part(std::int64_t sample, Range positions, std::span<std::int32_t> inputs,
                             std::span<std::int32_t> labels) const {
  const std::int64_t real = sample < samples_ ? source_.seq_len() : 0;
  const auto kept =
      static_cast<std::size_t>(std::clamp<std::int64_t>(real - positions.begin, 0, positions.size));
  const auto first = [kept](std::span<std::int32_t> all) {
    return all.first(std::min(kept, all.size()));
  };
  if (kept > 0)
    source_.read_part(sample, {positions.begin, static_cast<std::int64_t>(kept)}, first(inputs),
                      first(labels));
  if (!inputs.empty()) std::ranges::fill(inputs.subspan(kept), 0);
  if (!labels.empty()) std::ranges::fill(labels.subspan(kept), -100);
}

std::vector<std::int64_t> PaddedSource::document_starts(std::int64_t sample) const {
  return sample < samples_ ? source_.document_starts(sample) : std::vector<std::int64_t>{0};
}

}  // namespace tessera::data
