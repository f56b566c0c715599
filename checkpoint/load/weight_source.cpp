// SPDX-License-Identifier: Apache-2.0
#include "tessera/checkpoint/weight_source.hpp"

#include "tessera/base/convert.hpp"

namespace tessera::checkpoint {

std::string WeightSource::misfit(const TensorInfo& wanted) const {
  const TensorInfo* stored = find(wanted.name);
  if (!stored) return to_string(wanted);
  if (stored->shape == wanted.shape && convertible(stored->dtype, wanted.dtype)) return "";
  return fmt::format("stored {}, wanted {}", to_string(*stored), to_string(wanted));
}

void WeightSource::fill(std::span<const SliceView> wanted) const {
  for (const SliceView& view : wanted) read(view.slice, view.data);
}

}  // namespace tessera::checkpoint
