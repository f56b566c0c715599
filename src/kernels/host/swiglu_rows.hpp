// SPDX-License-Identifier: Apache-2.0
// SwiGLU over rows.
#pragma once

#include "host/simd.hpp"

namespace tessera::kernels::TESSERA_ISA_NAMESPACE {

template <class T>
void swiglu(Rows<const T> gate, Rows<const T> up, Rows<T> out, Extent extent) {
  for (std::int64_t row = 0; row < extent.rows; ++row)
    for_vectors<T>(extent.width, [g = row_of(gate, row), u = row_of(up, row), o = row_of(out, row)](
                                     std::int64_t i, auto part) {
      store(o + i, swiglu_element(load(g + i, part), load(u + i, part)), part);
    });
}

template <class T>
void swiglu_backward(Rows<const T> dy, Rows<const T> gate, Rows<const T> up, Rows<T> dgate,
                     Rows<T> dup, Extent extent) {
  for (std::int64_t row = 0; row < extent.rows; ++row)
    for_vectors<T>(extent.width,
                   [d = row_of(dy, row), g = row_of(gate, row), u = row_of(up, row),
                    dg = row_of(dgate, row), du = row_of(dup, row)](std::int64_t i, auto part) {
                     const auto gradient =
                         swiglu_gradient(load(d + i, part), load(g + i, part), load(u + i, part));
                     store(dg + i, gradient.gate, part);
                     store(du + i, gradient.up, part);
                   });
}

}  // namespace tessera::kernels::TESSERA_ISA_NAMESPACE
