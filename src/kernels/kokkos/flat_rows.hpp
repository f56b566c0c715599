// SPDX-License-Identifier: Apache-2.0
// Conversion, sums and AdamW over flat runs: range policies.
#pragma once

#include "kokkos/loops.hpp"

namespace tessera::kernels::kokkos {

template <class T>
void widen(Compute<T>* destination, const T* source, std::int64_t count) {
  for_each(
      count, KOKKOS_LAMBDA(std::int64_t i) { destination[i] = wide(source[i]); });
}

template <class T>
void accumulate(Compute<T>* sum, const T* values, std::int64_t count) {
  for_each(
      count, KOKKOS_LAMBDA(std::int64_t i) { sum[i] += wide(values[i]); });
}

template <class T>
void narrow(T* destination, const Compute<T>* source, std::int64_t count) {
  for_each(
      count, KOKKOS_LAMBDA(std::int64_t i) { destination[i] = narrow<T>(source[i]); });
}

template <class T>
double sum_of_squares(const T* values, std::int64_t count) {
  return sum_of(
      count, KOKKOS_LAMBDA(std::int64_t i) {
        const double v = wide(values[i]);
        return v * v;
      });
}

/// The bits of |v|, which order numbers as their values do; NaN is above infinity.
TESSERA_HD std::int64_t magnitude(double v) {
  return bits_as<std::int64_t>(v) & std::numeric_limits<std::int64_t>::max();
}

/// Adds term(i) exactly as three sums on ever finer grids; false where something is left or not
/// finite. Nothing is rounded, so the order of the additions does not matter.
template <class Term>
bool exact_sums(std::int64_t count, double* sums, const Term& term) {
  const std::int64_t bound = largest_of(
      count, KOKKOS_LAMBDA(std::int64_t i) { return magnitude(term(i)); });
  sums[0] = sums[1] = sums[2] = 0;
  if (bound >= magnitude(std::numeric_limits<double>::infinity())) return false;
  if (bound == 0) return true;
  const double coarse = extraction_constant(bits_as<double>(bound));
  if (coarse == 0) return false;
  const double middle = coarse * 0x1p-42, fine = middle * 0x1p-42;
  const auto high = KOKKOS_LAMBDA(std::int64_t i) { return (term(i) + coarse) - coarse; };
  const auto mid = KOKKOS_LAMBDA(std::int64_t i) {
    return ((term(i) - high(i)) + middle) - middle;
  };
  const auto low = KOKKOS_LAMBDA(std::int64_t i) {
    return ((term(i) - high(i) - mid(i)) + fine) - fine;
  };
  sums[0] = sum_of(count, high);
  sums[1] = sum_of(count, mid);
  sums[2] = sum_of(count, low);
  return largest_of(
             count, KOKKOS_LAMBDA(std::int64_t i) {
               return magnitude(term(i) - high(i) - mid(i) - low(i));
             }) == 0;
}

template <class T>
bool exact_values(const T* values, std::int64_t count, double* sums) {
  return exact_sums(
      count, sums, KOKKOS_LAMBDA(std::int64_t i) { return double(wide(values[i])); });
}

template <class T>
bool exact_squares(const T* values, std::int64_t count, double* sums) {
  return exact_sums(
      count, sums, KOKKOS_LAMBDA(std::int64_t i) {
        const double v = wide(values[i]);
        return v * v;
      });
}

template <class P, class G, class M>
void adamw(P* param, const G* grad, M* exp_avg, M* exp_avg_sq, Bf16* compute_copy,
           std::int64_t count, const AdamWArguments& arguments) {
  const auto c = adamw_constants<Compute<P>>(arguments);
  const RoundingNoise noise = arguments.noise;
  for_each(
      count, KOKKOS_LAMBDA(std::int64_t i) {
        const AdamWState<Compute<P>> old{wide(param[i]), wide(exp_avg[i]), wide(exp_avg_sq[i])};
        const auto next = adamw_element(old, Compute<P>(wide(grad[i])), c);
        store_state(next, noise, noise.first + i, param[i], exp_avg[i], exp_avg_sq[i]);
        if constexpr (sizeof(P) == 4)
          if (compute_copy != nullptr) compute_copy[i] = narrow<Bf16>(next.param);
      });
}

}  // namespace tessera::kernels::kokkos
