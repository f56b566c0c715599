// SPDX-License-Identifier: Apache-2.0
// How two checkpoints differ, tensor by tensor, whatever files and boxes they are stored in.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "tessera/checkpoint/checkpoint_reader.hpp"

namespace tessera::checkpoint {

struct TensorComparison {
  std::string name;
  std::optional<TensorInfo> a, b;  ///< empty where the checkpoint does not hold it
  /// values were: both hold it, with one shape and types that can be compared
  bool compared = false;
  std::int64_t elements = 0;
  std::int64_t differing = 0;  ///< elements with other bits; of two types: with other values
  /// largest |a - b|; infinity where one alone is NaN; float8 values are not measured
  double max_abs = 0;
  double max_rel = 0;  ///< largest |a - b| / max(|a|, |b|)
  /// The same type and shape, and each bit is.
  bool is_equal() const;
};

/// Compares each tensor that either holds, in natural order of their names, in bounded memory.
/// Error(checkpoint) when a block is damaged.
void compare(const CheckpointReader& a, const CheckpointReader& b,
             const std::function<void(const TensorComparison&)>& take);

}  // namespace tessera::checkpoint
