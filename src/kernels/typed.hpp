// SPDX-License-Identifier: Apache-2.0
// From tensors to typed pointers.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include "backend.hpp"
#include "row_types.hpp"
#include "tessera/base/error.hpp"

namespace tessera::kernels {

/// Calls body(T{}) with the storage type of `dtype`: double, float or Bf16.
template <class Body>
decltype(auto) with_type(at::ScalarType dtype, const Body& body) {
  switch (dtype) {
    case at::kDouble:
      return body(double{});
    case at::kFloat:
      return body(float{});
    case at::kBFloat16:
      return body(Bf16{});
    default:
      break;
  }
  fail(ExitCode::environment, "no kernel for dtype {}; use float64, float32 or bfloat16",
       c10::toString(dtype));
}

/// Calls body(P{}, G{}, M{}) with the storage types of parameter, gradient and moments that AdamW
/// serves.
template <class Body>
void with_adamw_types(const at::Tensor& param, const at::Tensor& grad, const at::Tensor& moment,
                      const Body& body) {
  if (param.scalar_type() == at::kDouble) return body(double{}, double{}, double{});
  const auto with = [](const at::Tensor& tensor, const auto& narrow_or_wide) {
    tensor.scalar_type() == at::kBFloat16 ? narrow_or_wide(Bf16{}) : narrow_or_wide(float{});
  };
  with(param,
       [&](auto p) { with(grad, [&](auto g) { with(moment, [&](auto m) { body(p, g, m); }); }); });
}

template <class T>
T* pointer(const at::Tensor& t) {
  return static_cast<T*>(t.mutable_data_ptr());
}
template <class T>
const T* const_pointer(const at::Tensor& t) {
  return static_cast<const T*>(t.const_data_ptr());
}

/// Of a tensor that may be undefined: null, then.
template <class T>
const T* pointer_or_null(const at::Tensor& t) {
  return t.defined() ? const_pointer<T>(t) : nullptr;
}

template <class T>
Rows<T> rows_from(const RowsOf& r, std::int64_t first) {
  return {pointer<T>(r.tensor) + first * r.stride, r.stride};
}
template <class T>
Rows<const T> const_rows_from(const RowsOf& r, std::int64_t first) {
  return {const_pointer<T>(r.tensor) + first * r.stride, r.stride};
}

/// The rows of the operands from `first` on.
template <class T>
ElementRows<T> element_rows_from(const ElementOperands& operands, std::int64_t first) {
  TESSERA_EXPECT(operands.inputs.size() <= most_element_operands &&
                     operands.outputs.size() <= most_element_operands,
                 "an element kernel with too many operands");
  ElementRows<T> rows{};
  rows.numbers = operands.numbers;
  for (std::size_t k = 0; k < operands.inputs.size(); ++k)
    rows.inputs[k] = const_rows_from<T>(operands.inputs[k], first);
  for (std::size_t k = 0; k < operands.outputs.size(); ++k)
    rows.outputs[k] = rows_from<T>(operands.outputs[k], first);
  return rows;
}

}  // namespace tessera::kernels
