// SPDX-License-Identifier: Apache-2.0
// What travels from cell to cell: a small struct of tensors, each in a named slot.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include <array>
#include <utility>

#include "tessera/model_spec/slot.hpp"

namespace tessera::model {

/// An undefined tensor means that the slot is not live here.
class Flow {
 public:
  at::Tensor& operator[](Slot slot) { return slots_[static_cast<std::size_t>(slot)]; }
  const at::Tensor& operator[](Slot slot) const { return slots_[static_cast<std::size_t>(slot)]; }
  /// The slot's tensor, leaving the slot empty, so that its memory can go as soon as the caller is
  /// done with it.
  at::Tensor take(Slot slot) { return std::exchange((*this)[slot], at::Tensor()); }

 private:
  std::array<at::Tensor, kSlots> slots_;
};

}  // namespace tessera::model
