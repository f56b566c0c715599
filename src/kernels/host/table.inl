// SPDX-License-Identifier: Apache-2.0
// The table of the row functions in TESSERA_ISA_NAMESPACE; included once, after them.
#include "host/normal_rows.hpp"
#include "host/row_functions.hpp"

namespace tessera::kernels::TESSERA_ISA_NAMESPACE {

template <class T>
constexpr RowFunctions<T> row_functions() {
  return {.rms_norm = &rms_norm<T>,
          .rms_norm_backward = &rms_norm_backward<T>,
#define TESSERA_ENTRY(name, Type) .name = &element_rows<Type, T>,
          TESSERA_ELEMENT_KERNELS(TESSERA_ENTRY)
#undef TESSERA_ENTRY
              .rope = &rope<T>,
          .row_max = &row_max<T>,
          .sum_exp = &sum_exp<T>,
          .softmax_gradient = &softmax_gradient<T>,
          .widen = &widen<T>,
          .accumulate = &accumulate<T>,
          .narrow = &narrow<T>,
          .sum_of_squares = &sum_of_squares<T>,
          .exact_values = &exact_values<T>,
          .exact_squares = &exact_squares<T>};
}

template <class P>
constexpr AdamWFunctions<P> adamw_functions() {
  return {.wide = &adamw<P, float, float>,
          .bf16_gradient = &adamw<P, Bf16, float>,
          .bf16_moments = &adamw<P, float, Bf16>,
          .bf16_both = &adamw<P, Bf16, Bf16>};
}

extern constexpr HostFunctions host_functions{
    .f64 = row_functions<double>(),
    .f32 = row_functions<float>(),
    .bf16 = row_functions<Bf16>(),
    .attention_f64 = attention_functions<double>(),
    .attention_f32 = attention_functions<float>(),
    .attention_bf16 = attention_functions<Bf16>(),
    .adamw_f64 = &adamw<double, double, double>,
    .adamw_f32 = adamw_functions<float>(),
    .adamw_bf16 = adamw_functions<Bf16>(),
    .draw_normals = &draw_normals,
};

}  // namespace tessera::kernels::TESSERA_ISA_NAMESPACE
