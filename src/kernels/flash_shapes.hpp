// SPDX-License-Identifier: Apache-2.0
// What LibTorch's flash attention takes.
#pragma once

#include "tessera/kernels/attention_part.hpp"

namespace tessera::kernels::device {

inline bool in_flash(const AttentionPart& part) {
  const bool half = part.q.scalar_type() == at::kBFloat16 || part.q.scalar_type() == at::kHalf;
  const std::int64_t head = part.q.size(3);
  return half && head == part.v.size(3) && head % 8 == 0 && head <= 256 && !part.mask.defined();
}

}  // namespace tessera::kernels::device
