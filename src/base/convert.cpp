// SPDX-License-Identifier: Apache-2.0
#include "tessera/base/convert.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>

namespace tessera {
namespace {

struct Half {
  std::uint16_t bits;
};
struct BFloat {
  std::uint16_t bits;
};

double widen(double v) { return v; }
float widen(float v) { return v; }
float widen(Half v) { return f16_to_f32(v.bits); }
float widen(BFloat v) { return bf16_to_f32(v.bits); }

/// Rounds to odd, so that a second rounding to 16 bits gives what one rounding from double would
/// have given.
float to_float_for_rounding(double v) {
  const float nearest = static_cast<float>(v);
  if (static_cast<double>(nearest) == v || v != v) return nearest;
  const auto bits = std::bit_cast<std::uint32_t>(nearest);
  if (bits & 1u) return nearest;
  const bool away =
      (v < 0 ? -static_cast<double>(nearest) : static_cast<double>(nearest)) > (v < 0 ? -v : v);
  return std::bit_cast<float>(away ? bits - 1 : bits + 1);
}
float to_float_for_rounding(float v) { return v; }

template <class To, class From>
To narrow(From v) {
  if constexpr (std::is_same_v<To, Half>)
    return {f32_to_f16(to_float_for_rounding(v))};
  else if constexpr (std::is_same_v<To, BFloat>)
    return {f32_to_bf16(to_float_for_rounding(v))};
  else
    return static_cast<To>(v);
}

/// Whether To holds every finite number of From, rounded.
template <class From, class To>
constexpr bool kHasRange = std::is_same_v<To, double> ||
                           (std::is_same_v<To, float> && sizeof(From) < sizeof(double)) ||
                           (std::is_same_v<To, BFloat> && std::is_same_v<From, Half>);

bool is_infinite(Half v) { return (v.bits & 0x7fffu) == 0x7c00u; }
bool is_infinite(BFloat v) { return (v.bits & 0x7fffu) == 0x7f80u; }
template <class T>
bool is_infinite(T v) {
  return std::isinf(v);
}

template <class From, class To>
bool convert_all(const void* from, void* to, std::int64_t count) {
  const auto* in = static_cast<const unsigned char*>(from);
  auto* out = static_cast<unsigned char*>(to);
  bool fits = true;
  for (std::int64_t i = 0; i < count; ++i, in += sizeof(From), out += sizeof(To)) {
    From value;
    std::memcpy(&value, in, sizeof value);
    To result;
    if constexpr (std::is_integral_v<From>) {
      if (!std::in_range<To>(value)) return false;
      result = static_cast<To>(value);
    } else {
      result = narrow<To>(widen(value));
      if constexpr (!kHasRange<From, To>) fits &= !is_infinite(result) || is_infinite(value);
    }
    std::memcpy(out, &result, sizeof result);
  }
  return fits;
}

enum class Family { floating, integer, none };

Family family_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
    case DType::f32:
    case DType::f16:
    case DType::bf16:
      return Family::floating;
    case DType::i64:
    case DType::i32:
    case DType::i16:
    case DType::i8:
    case DType::u8:
      return Family::integer;
    default:
      return Family::none;
  }
}

template <class From>
bool from_floating(const void* from, void* to, DType to_type, std::int64_t count) {
  switch (to_type) {
    case DType::f64:
      return convert_all<From, double>(from, to, count);
    case DType::f32:
      return convert_all<From, float>(from, to, count);
    case DType::f16:
      return convert_all<From, Half>(from, to, count);
    case DType::bf16:
      return convert_all<From, BFloat>(from, to, count);
    default:
      return false;
  }
}

template <class From>
bool from_integer(const void* from, void* to, DType to_type, std::int64_t count) {
  switch (to_type) {
    case DType::i64:
      return convert_all<From, std::int64_t>(from, to, count);
    case DType::i32:
      return convert_all<From, std::int32_t>(from, to, count);
    case DType::i16:
      return convert_all<From, std::int16_t>(from, to, count);
    case DType::i8:
      return convert_all<From, std::int8_t>(from, to, count);
    case DType::u8:
      return convert_all<From, std::uint8_t>(from, to, count);
    default:
      return false;
  }
}

}  // namespace

bool convertible(DType from, DType to) noexcept {
  return from == to || (family_of(from) != Family::none && family_of(from) == family_of(to));
}

bool convert(const void* from, DType from_type, void* to, DType to_type,
             std::int64_t count) noexcept {
  if (from_type == to_type) {
    std::memcpy(to, from, static_cast<std::size_t>(count) * size_of(to_type));
    return true;
  }
  switch (from_type) {
    case DType::f64:
      return from_floating<double>(from, to, to_type, count);
    case DType::f32:
      return from_floating<float>(from, to, to_type, count);
    case DType::f16:
      return from_floating<Half>(from, to, to_type, count);
    case DType::bf16:
      return from_floating<BFloat>(from, to, to_type, count);
    case DType::i64:
      return from_integer<std::int64_t>(from, to, to_type, count);
    case DType::i32:
      return from_integer<std::int32_t>(from, to, to_type, count);
    case DType::i16:
      return from_integer<std::int16_t>(from, to, to_type, count);
    case DType::i8:
      return from_integer<std::int8_t>(from, to, to_type, count);
    case DType::u8:
      return from_integer<std::uint8_t>(from, to, to_type, count);
    default:
      return false;
  }
}

}  // namespace tessera
