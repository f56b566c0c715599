// SPDX-License-Identifier: Apache-2.0
// Boxes of tensors in memory, from which a save takes and into which a load puts.
#pragma once

#include "tessera/base/tensor_slice.hpp"

namespace tessera::checkpoint {

/// A box of a global tensor in this rank's host memory, contiguous and row-major.
/// `slice.name` is the dataset's path: "model/<fqn>", "optimizer/exp_avg/<fqn>". An extent of 0 is
/// an empty box. On save, `replicas` ranks hold this same box, and this rank is number `replica` of
/// them: each of them writes a part of the rows (of a small box: one of them writes it), so that
/// bytes balance without any exchange. On load, `slice.dtype` is the type wanted; f64, f32,
/// f16 and bf16 convert into each other.
struct SliceView {
  TensorSlice slice;
  void* data = nullptr;
  int replica = 0;
  int replicas = 1;
};

}  // namespace tessera::checkpoint
