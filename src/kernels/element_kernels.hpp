// SPDX-License-Identifier: Apache-2.0
// Kernels that compute each element from the elements at its place in other tensors. A line of the
// list and a type with the arithmetic make a kernel on every device: the loops, the tables and the
// launches follow from them. No library code in here: see row_types.hpp.
#pragma once

#include "row_types.hpp"

/// X(name, Type): Backend::name computes Type.
///
/// Type::apply<V> computes with V: float, double, or on the host a vector of them. `V{}` is zero,
/// and `a < b ? x : y` chooses lane by lane if all four are of type V. elements.hpp and numbers.hpp
/// have the functions of V: fma, square_root, reciprocal, exponential, sigmoid.
#define TESSERA_ELEMENT_KERNELS(X) \
  X(swiglu, Swiglu)                \
  X(swiglu_backward, SwigluBackward)

namespace tessera::kernels {

/// At most this many inputs, and outputs.
inline constexpr int most_element_operands = 4;

/// Rows of one extent.
template <class T>
struct ElementRows {
  Rows<const T> inputs[most_element_operands];
  Rows<T> outputs[most_element_operands];
};

}  // namespace tessera::kernels

#ifdef TESSERA_ISA_NAMESPACE  // only what runs the arithmetic is compiled for an instruction set
#include "elements.hpp"

namespace tessera::kernels::TESSERA_ISA_NAMESPACE {

/// gate, up -> silu(gate) * up.
struct Swiglu {
  static constexpr int inputs = 2, outputs = 1;
  template <class V>
  static TESSERA_HD void apply(const V (&in)[inputs], V (&out)[outputs]) {
    out[0] = in[0] * sigmoid(in[0]) * in[1];
  }
};

/// dy, gate, up -> dgate, dup.
struct SwigluBackward {
  static constexpr int inputs = 3, outputs = 2;
  template <class V>
  static TESSERA_HD void apply(const V (&in)[inputs], V (&out)[outputs]) {
    const V dy = in[0], gate = in[1], up = in[2];
    const V s = sigmoid(gate);
    const V silu = gate * s;
    out[0] = dy * up * fma(silu, 1 - s, s);
    out[1] = dy * silu;
  }
};

}  // namespace tessera::kernels::TESSERA_ISA_NAMESPACE
#endif
