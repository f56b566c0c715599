// SPDX-License-Identifier: Apache-2.0
// Conversion, sums and AdamW over flat runs.
#pragma once

#include "host/simd.hpp"
#include "noise.hpp"

namespace tessera::kernels::TESSERA_ISA_NAMESPACE {

template <class T>
void widen(Compute<T>* destination, const T* source, std::int64_t count) {
  for_vectors<T>(count, [&](std::int64_t i, auto part) {
    store(destination + i, load(source + i, part), part);
  });
}

template <class T>
void accumulate(Compute<T>* sum, const T* values, std::int64_t count) {
  for_vectors<T>(count, [&](std::int64_t i, auto part) {
    store(sum + i, load(sum + i, part) + load(values + i, part), part);
  });
}

template <class T>
void narrow(T* destination, const Compute<T>* source, std::int64_t count) {
  for_vectors<T>(count, [&](std::int64_t i, auto part) {
    store(destination + i, load(source + i, part), part);
  });
}

/// Vectors of doubles from stored elements, lanes<double> at a time.
TESSERA_HD F64 load_f64(const double* p) { return load(p, Whole{}); }
TESSERA_HD F64 load_f64(const float* p) {
  HalfF32 half;
  __builtin_memcpy(&half, p, sizeof half);
  return __builtin_convertvector(half, F64);
}
TESSERA_HD F64 load_f64(const Bf16* p) {
  float wide[lanes<double>];
  for (std::int64_t i = 0; i < lanes<double>; ++i)
    wide[i] = bits_as<float>(std::uint32_t{p[i].bits} << 16);
  return load_f64(wide);
}

/// The tail of a run, padded with zeros.
template <class T>
TESSERA_HD F64 load_f64(const T* p, std::int64_t count) {
  if (count >= lanes<double>) return load_f64(p);
  T padded[lanes<double>] = {};
  for (std::int64_t i = 0; i < count; ++i) padded[i] = p[i];
  return load_f64(padded);
}

template <class T>
double sum_of_squares(const T* values, std::int64_t count) {
  F64 sums[4] = {};
  std::int64_t i = 0;
  for (; i + 4 * lanes<double> <= count; i += 4 * lanes<double>)
    for (int k = 0; k < 4; ++k) {
      const F64 v = load_f64(values + i + k * lanes<double>);
      sums[k] = fma(v, v, sums[k]);
    }
  for (; i < count; i += lanes<double>) {
    const F64 v = load_f64(values + i, count - i);
    sums[0] = fma(v, v, sums[0]);
  }
  return fold((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

/// Adds term(v) of all values exactly as three sums on ever finer grids; false where something is
/// left or not finite.
template <class T, class Term>
TESSERA_HD bool exact_sums(const T* values, std::int64_t count, double* sums, const Term& term) {
  F64 largest{}, poison{};
  for (std::int64_t i = 0; i < count; i += lanes<double>) {
    const F64 v = term(load_f64(values + i, count - i));
    largest = larger(v < 0 ? -v : v, largest);
    poison += v - v;
  }
  sums[0] = sums[1] = sums[2] = 0;
  const double bound = fold_max(largest);
  if (fold(poison) != 0) return false;
  if (bound == 0) return true;
  const double coarse = extraction_constant(bound);
  if (coarse == 0) return false;
  const double middle = coarse * 0x1p-42, fine = middle * 0x1p-42;
  F64 high{}, mid{}, low{}, rest{};
  for (std::int64_t i = 0; i < count; i += lanes<double>) {
    F64 v = term(load_f64(values + i, count - i));
    const F64 a = (v + coarse) - coarse;
    v -= a;
    const F64 b = (v + middle) - middle;
    v -= b;
    const F64 c = (v + fine) - fine;
    high += a;
    mid += b;
    low += c;
    v -= c;
    rest = larger(v < 0 ? -v : v, rest);
  }
  sums[0] = fold(high);
  sums[1] = fold(mid);
  sums[2] = fold(low);
  return fold_max(rest) == 0;
}

template <class T>
bool exact_values(const T* values, std::int64_t count, double* sums) {
  return exact_sums(values, count, sums, [](F64 v) { return v; });
}

template <class T>
bool exact_squares(const T* values, std::int64_t count, double* sums) {
  return exact_sums(values, count, sums, [](F64 v) { return v * v; });
}

/// random_bits() of neighbours from `number` on.
struct RandomVectors {
  U32 low, high;
};
TESSERA_HD RandomVectors random_vectors(const RoundingNoise& noise, std::int64_t number) {
  U32 places{};
  for (std::uint32_t k = 0; k < sizeof places / sizeof k; ++k) places[k] = k;
  const auto low = static_cast<std::uint32_t>(number);
  RandomVectors bits{low + places, U32{} + static_cast<std::uint32_t>(number >> 32)};
  bits.high -= U32(bits.low < low);  // the carry, of which a comparison makes -1
  bits.high ^= noise.high_key;
  std::uint32_t key = noise.low_key;
  for (int round = 0; round < philox_rounds; ++round, key += philox_step) {
    const U32 product = bits.low * philox_factor;
    bits.low = product_high(bits.low, philox_factor) ^ key ^ bits.high;
    bits.high = product;
  }
  return bits;
}

template <class P, class G, class M>
void adamw(P* param, const G* grad, M* exp_avg, M* exp_avg_sq, Bf16* compute_copy,
           std::int64_t count, const AdamWArguments& arguments) {
  const auto c = adamw_constants<Compute<P>>(arguments);
  const RoundingNoise& noise = arguments.noise;
  for_vectors<P>(count, [&](std::int64_t i, auto part) {
    const AdamWState<VecOf<P>> old{load(param + i, part), load(exp_avg + i, part),
                                   load(exp_avg_sq + i, part)};
    const auto next = adamw_element(old, load(grad + i, part), c);
    constexpr bool narrow_results = sizeof(P) == 2 || sizeof(M) == 2;
    if (!narrow_results || !noise.on) {
      store(param + i, next.param, part);
      store(exp_avg + i, next.exp_avg, part);
      store(exp_avg_sq + i, next.exp_avg_sq, part);
    } else if constexpr (narrow_results) {
      const RandomVectors bits = random_vectors(noise, noise.first + i);
      store(param + i, next.param, bits.low, part);
      store(exp_avg + i, next.exp_avg, bits.low >> 16, part);
      store(exp_avg_sq + i, next.exp_avg_sq, bits.high, part);
    }
    if constexpr (sizeof(P) == 4)
      if (compute_copy != nullptr) store(compute_copy + i, next.param, part);
  });
}

}  // namespace tessera::kernels::TESSERA_ISA_NAMESPACE
