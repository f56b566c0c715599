// SPDX-License-Identifier: Apache-2.0
// Host tensors on the bytes of device tensors.
#pragma once

#include <ATen/core/Tensor.h>

#include <utility>
#include <vector>

#include "sim/sim.hpp"

namespace tessera::sim {

/// For one call of an operator. A twin has its tensor's shape, strides, type and bytes; tensors
/// that are the same or share a storage have twins that do, so that LibTorch's checks for overlaps
/// see what is there. A twin owns no device memory.
class HostTwins {
 public:
  /// Host tensors and undefined ones are their own twins. Throws c10::Error for a tensor whose
  /// storage was given back.
  at::Tensor of(const at::Tensor& tensor);

  /// The other way: the tensor whose twin `twin` is, or a view of its storage where the twin is one
  /// of its bytes. Undefined for a host tensor with memory of its own.
  at::Tensor device_tensor(const at::Tensor& twin) const;

  /// `twin` stands for `tensor` though it has other memory.
  void pair(const at::Tensor& tensor, const at::Tensor& twin) {
    tensors_.emplace_back(tensor, twin);
  }

 private:
  c10::Storage storage_twin(const at::Tensor& tensor);

  std::vector<std::pair<at::Tensor, at::Tensor>> tensors_;
  /// a tensor with the storage, and the twin of that
  std::vector<std::pair<at::Tensor, c10::Storage>> storages_;
};

/// Adds the tensor's bytes, those between its elements left out.
void add_accesses(std::vector<Access>& accesses, const at::Tensor& tensor, bool writes);

}  // namespace tessera::sim
