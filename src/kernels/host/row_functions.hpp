// SPDX-License-Identifier: Apache-2.0
// The host kernels as plain functions over ranges of rows: one table for each instruction set, and
// one in Kokkos. No library code in here: this header is compiled for every instruction set.
#pragma once

#include "element_kernels.hpp"
#include "host/attention_shape.hpp"
#include "normal.hpp"
#include "row_types.hpp"

namespace tessera::kernels {

template <class T>
struct RowFunctions {
  using C = Compute<T>;
  /// y and rstd [rows] from the input and weight [width].
  void (*rms_norm)(const NormInput<T>& in, const T* weight, T* y, C* rstd, Extent extent,
                   double eps);
  /// dx, and dweight [width] += these rows' part; x is what was normed.
  void (*rms_norm_backward)(const NormGradient<T>& gradient, const T* x, const T* weight,
                            const C* rstd, T* dx, C* dweight, Extent extent);
#define TESSERA_MEMBER(name, Type) void (*name)(const ElementRows<T>& rows, Extent extent);
  TESSERA_ELEMENT_KERNELS(TESSERA_MEMBER)
#undef TESSERA_MEMBER
  /// sign +1 rotates forward, -1 back; y may be x.
  void (*rope)(const T* x, const C* cos, const C* sin, T* y, RopeExtent extent, C sign);
  void (*row_max)(Rows<const T> logits, C* max, Extent extent);
  void (*sum_exp)(Rows<const T> logits, const C* max, RowLabels labels, C* sum, C* target,
                  Extent extent);
  void (*softmax_gradient)(Rows<T> logits, const C* max, const C* sum, RowLabels labels, C scale,
                           Extent extent);
  void (*widen)(C* destination, const T* source, std::int64_t count);
  void (*accumulate)(C* sum, const T* values, std::int64_t count);
  void (*narrow)(T* destination, const C* source, std::int64_t count);
  double (*sum_of_squares)(const T* values, std::int64_t count);
  /// Sums[0] + sums[1] + sums[2] is exactly the sum of the values, or of their squares in double;
  /// count <= 1024. False where three doubles do not suffice or a value is not finite; sums is then
  /// undefined.
  bool (*exact_values)(const T* values, std::int64_t count, double* sums);
  bool (*exact_squares)(const T* values, std::int64_t count, double* sums);
};

/// P parameter, G gradient, M moments; compute_copy may be null. The elements are neighbours in the
/// whole parameter too: the noise's run is not read.
template <class P, class G, class M>
using AdamWSweep = void (*)(P* param, const G* grad, M* exp_avg, M* exp_avg_sq, Bf16* compute_copy,
                            std::int64_t count, const AdamWArguments& arguments);

/// Of parameters of type P, with gradients and moments in float or Bf16.
template <class P>
struct AdamWFunctions {
  AdamWSweep<P, float, float> wide;
  AdamWSweep<P, Bf16, float> bf16_gradient;
  AdamWSweep<P, float, Bf16> bf16_moments;
  AdamWSweep<P, Bf16, Bf16> bf16_both;
};

struct HostFunctions {
  RowFunctions<double> f64;
  RowFunctions<float> f32;
  RowFunctions<Bf16> bf16;
  /// Null in Kokkos.
  AttentionFunctions<double> attention_f64;
  AttentionFunctions<float> attention_f32;
  AttentionFunctions<Bf16> attention_bf16;
  AdamWSweep<double, double, double> adamw_f64;
  AdamWFunctions<float> adamw_f32;
  AdamWFunctions<Bf16> adamw_bf16;
  /// out[i] = the initial value of element first + i, for i < count; the same bits in each table.
  void (*draw_normals)(const Philox& philox, std::uint64_t first, std::int64_t count,
                       const CutNormal& normal, double* out);
};

namespace kokkos {
extern const HostFunctions host_functions;
}
namespace sse {
extern const HostFunctions host_functions;
}
namespace avx2 {
extern const HostFunctions host_functions;
}
namespace avx512 {
extern const HostFunctions host_functions;
}

/// The vector files' table for instruction_set(); nullptr on a processor that has none.
const HostFunctions* vector_functions();

/// The table that choose_host_kernels() chose.
const HostFunctions& host_functions();

}  // namespace tessera::kernels
