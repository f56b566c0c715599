// SPDX-License-Identifier: Apache-2.0
#include "drawn_tokens.hpp"

#include "tessera/kernels/philox.hpp"

namespace tessera::train {

void DrawnTokens::read(std::int64_t sample, std::span<std::int32_t> inputs,
                       std::span<std::int32_t> labels) const {
  const kernels::Philox random{0, static_cast<std::uint64_t>(sample)};
  const auto token = [&](std::size_t position) {
    return static_cast<std::int32_t>(random.block(position)[0] % vocab_);
  };
  for (std::size_t t = 0; t < inputs.size(); ++t) inputs[t] = token(t);
  for (std::size_t t = 0; t < labels.size(); ++t) labels[t] = token(t + 1);
}

std::vector<std::int64_t> DrawnTokens::document_starts(std::int64_t /*sample*/) const {
  return {0};
}

}  // namespace tessera::train
