// SPDX-License-Identifier: Apache-2.0
// Element kernels over rows.
#pragma once

#include "element_kernels.hpp"
#include "host/simd.hpp"

namespace tessera::kernels::TESSERA_ISA_NAMESPACE {

template <class Kernel, class T>
void element_rows(const ElementRows<T>& operands, Extent extent) {
  for (std::int64_t row = 0; row < extent.rows; ++row) {
    const T* inputs[Kernel::inputs];
    T* outputs[Kernel::outputs];
    for (int k = 0; k < Kernel::inputs; ++k) inputs[k] = row_of(operands.inputs[k], row);
    for (int k = 0; k < Kernel::outputs; ++k) outputs[k] = row_of(operands.outputs[k], row);
    for_vectors<T>(extent.width, [&](std::int64_t i, auto part) {
      VecOf<T> in[Kernel::inputs], out[Kernel::outputs];
      for (int k = 0; k < Kernel::inputs; ++k) in[k] = load(inputs[k] + i, part);
      Kernel::apply(in, out, operands.numbers);
      for (int k = 0; k < Kernel::outputs; ++k) store(outputs[k] + i, out[k], part);
    });
  }
}

}  // namespace tessera::kernels::TESSERA_ISA_NAMESPACE
