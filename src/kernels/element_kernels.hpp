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
#define TESSERA_ELEMENT_KERNELS(X)   \
  X(swiglu, Swiglu)                  \
  X(swiglu_backward, SwigluBackward) \
  X(clamped_gate, ClampedGate)       \
  X(clamped_gate_backward, ClampedGateBackward)

namespace tessera::kernels {

/// At most this many inputs, and outputs.
inline constexpr int most_element_operands = 4;

/// What the arithmetic takes beside its operands; each Type says which it takes.
struct ElementNumbers {
  double alpha = 0, limit = 0;
};

/// Rows of one extent.
template <class T>
struct ElementRows {
  Rows<const T> inputs[most_element_operands];
  Rows<T> outputs[most_element_operands];
  ElementNumbers numbers;
};

}  // namespace tessera::kernels

#ifdef TESSERA_ISA_NAMESPACE  // only what runs the arithmetic is compiled for an instruction set
#include "elements.hpp"

namespace tessera::kernels::TESSERA_ISA_NAMESPACE {

/// gate, up -> silu(gate) * up.
struct Swiglu {
  static constexpr int inputs = 2, outputs = 1;
  template <class V>
  static TESSERA_HD void apply(const V (&in)[inputs], V (&out)[outputs], const ElementNumbers&) {
    out[0] = in[0] * sigmoid(in[0]) * in[1];
  }
};

/// dy, gate, up -> dgate, dup.
struct SwigluBackward {
  static constexpr int inputs = 3, outputs = 2;
  template <class V>
  static TESSERA_HD void apply(const V (&in)[inputs], V (&out)[outputs], const ElementNumbers&) {
    const V dy = in[0], gate = in[1], up = in[2];
    const V s = sigmoid(gate);
    const V silu = gate * s;
    out[0] = dy * up * fma(silu, 1 - s, s);
    out[1] = dy * silu;
  }
};

/// What both kernels of the clamped gate need.
template <class V>
struct ClampedInputs {
  using S = typename ElementOf<V>::Scalar;

  TESSERA_HD ClampedInputs(V gate, V up, const ElementNumbers& numbers)
      : limit(V{} + S(numbers.limit)), alpha(V{} + S(numbers.alpha)) {
    g = at_most(gate, limit);
    s = sigmoid(alpha * g);
    inside = at_least(at_most(up, limit), -limit);
    raised = inside + 1;
  }

  V limit, alpha;
  V g;       ///< min(gate, limit)
  V s;       ///< sigmoid(alpha g)
  V inside;  ///< up within the limits
  V raised;  ///< inside + 1
};

/// gate, up -> (clamp(up, +-limit) + 1) g sigmoid(alpha g), where g = min(gate, limit).
struct ClampedGate {
  static constexpr int inputs = 2, outputs = 1;
  template <class V>
  static TESSERA_HD void apply(const V (&in)[inputs], V (&out)[outputs],
                               const ElementNumbers& numbers) {
    const ClampedInputs<V> of(in[0], in[1], numbers);
    out[0] = of.raised * (of.g * of.s);
  }
};

/// dy, gate, up -> dgate, dup: zero where the limit holds, and dup where up is a NaN.
struct ClampedGateBackward {
  static constexpr int inputs = 3, outputs = 2;
  template <class V>
  static TESSERA_HD void apply(const V (&in)[inputs], V (&out)[outputs],
                               const ElementNumbers& numbers) {
    const V dy = in[0], gate = in[1], up = in[2], zero{};
    const ClampedInputs<V> of(gate, up, numbers);
    const V product = of.g * of.s, slope = fma(of.alpha * product, 1 - of.s, of.s);
    out[0] = gate > of.limit ? zero : dy * of.raised * slope;
    out[1] = up == of.inside ? dy * product : zero;
  }
};

}  // namespace tessera::kernels::TESSERA_ISA_NAMESPACE
#endif
