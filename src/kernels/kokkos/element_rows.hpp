// SPDX-License-Identifier: Apache-2.0
// Element kernels: team policies, one team for each row.
#pragma once

#include "element_kernels.hpp"
#include "kokkos/loops.hpp"

namespace tessera::kernels::kokkos {

template <class Kernel, class T>
void element_rows(const ElementRows<T>& operands, Extent extent) {
  using C = Compute<T>;
  for_rows(
      extent.rows, KOKKOS_LAMBDA(const Team& team, std::int64_t row) {
        for_columns(team, 0, extent.width, [=](std::int64_t i) {
          C in[Kernel::inputs], out[Kernel::outputs];
          for (int k = 0; k < Kernel::inputs; ++k) {
            const Rows<const T>& rows = operands.inputs[k];
            in[k] = wide(rows.data[row * rows.stride + i]);
          }
          Kernel::apply(in, out, operands.numbers);
          for (int k = 0; k < Kernel::outputs; ++k) {
            const Rows<T>& rows = operands.outputs[k];
            rows.data[row * rows.stride + i] = narrow<T>(out[k]);
          }
        });
      });
}

}  // namespace tessera::kernels::kokkos
