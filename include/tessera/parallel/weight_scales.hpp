// SPDX-License-Identifier: Apache-2.0
// Scales of weights that are gathered as bytes in float8 (e4m3): one for each whole weight, from
// the largest magnitude of its masters, as torchao's precompute_float8_dynamic_scale_for_fsdp.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include <vector>

#include "tessera/comm/communicator.hpp"
#include "tessera/kernels/scaled_bytes.hpp"

namespace tessera::parallel {

/// Of the weights of one pipeline stage. Current until the masters change.
class WeightScales {
 public:
  /// For `weights` matrices, each cut over the ranks of `fsdp` and of `tp`, which must outlive
  /// this. The scales are on `device`.
  WeightScales(std::int64_t weights, comm::Communicator& fsdp, comm::Communicator& tp,
               at::Device device);

  /// Takes the next weight, of which this rank has `master` [rows, columns], perhaps without rows.
  /// Returns its scale and the inverse, which refresh() writes; the bytes are undefined.
  kernels::ScaledBytes add(const at::Tensor& master);
  /// Makes stale scales again. Collective over fsdp and tp, in one reduction over each.
  void refresh();
  /// Masters change.
  void mark_stale() { current_ = false; }

 private:
  comm::Communicator& fsdp_;
  comm::Communicator& tp_;
  std::vector<at::Tensor> masters_;
  at::Tensor scales_, inverses_;  ///< [weights, the same number several times]
  bool current_ = false;
};

}  // namespace tessera::parallel
