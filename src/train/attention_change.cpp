// SPDX-License-Identifier: Apache-2.0
#include "attention_change.hpp"

#include <fmt/format.h>

#include <charconv>

#include "tessera/config/recorded.hpp"

namespace tessera::train {

std::string attention_change(const model::DecoderShape& shape, std::int64_t seq_len,
                             std::string_view toml) {
  const std::string recorded = config::recorded(toml, "training.seq_len").value_or("");
  std::int64_t before = 0;
  std::from_chars(recorded.data(), recorded.data() + recorded.size(), before);
  if (before <= 0 || !shape.yarn) return "";
  const bool applies = shape.yarn->applies_to(seq_len);
  if (applies == shape.yarn->applies_to(before)) return "";
  return fmt::format(
      "training.seq_len is {}, and was {} in the checkpoint: YaRN {} applies, as it does to "
      "sequences of more than {} positions. The model computes another attention than before",
      seq_len, before, applies ? "now" : "no longer", shape.yarn->original_max_position);
}

}  // namespace tessera::train
