// From tensors to the host's row functions: typed pointers and threads.
#pragma once

#include <torch/torch.h>

#include <algorithm>

#include "backend.hpp"
#include "host/row_functions.hpp"
#include "tessera/base/error.hpp"

namespace tessera::kernels {

inline const RowFunctions<double>& functions_of(double) { return host_functions().f64; }
inline const RowFunctions<float>& functions_of(float) { return host_functions().f32; }
inline const RowFunctions<Bf16>& functions_of(Bf16) { return host_functions().bf16; }

/// Calls body(T{}) with the storage type of `dtype`: double, float or Bf16.
template <class Body> decltype(auto) with_type(at::ScalarType dtype, const Body& body) {
  switch (dtype) {
    case at::kDouble: return body(double{});
    case at::kFloat: return body(float{});
    case at::kBFloat16: return body(Bf16{});
    default: break;
  }
  fail(ExitCode::environment, "no kernel for dtype {}; use float64, float32 or bfloat16", c10::toString(dtype));
}

template <class T> T* pointer(const at::Tensor& t) { return static_cast<T*>(t.mutable_data_ptr()); }
template <class T> const T* const_pointer(const at::Tensor& t) { return static_cast<const T*>(t.const_data_ptr()); }

template <class T> Rows<T> rows_from(const RowsOf& r, std::int64_t first) {
  return {pointer<T>(r.tensor) + first * r.stride, r.stride};
}
template <class T> Rows<const T> const_rows_from(const RowsOf& r, std::int64_t first) {
  return {const_pointer<T>(r.tensor) + first * r.stride, r.stride};
}

/// Elements that are worth a thread of their own.
inline constexpr std::int64_t elements_per_task = 16384;

/// body(first, count) over [0, rows), in parallel, each task at least elements_per_task elements of `width` a row.
template <class Body> void for_rows(std::int64_t rows, std::int64_t width, const Body& body) {
  const std::int64_t grain = std::max<std::int64_t>(1, elements_per_task / std::max<std::int64_t>(1, width));
  at::parallel_for(0, rows, grain, [&](std::int64_t begin, std::int64_t end) { body(begin, end - begin); });
}

}  // namespace tessera::kernels
