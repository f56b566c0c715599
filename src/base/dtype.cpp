// SPDX-License-Identifier: Apache-2.0
#include "tessera/base/dtype.hpp"

#include <array>
#include <bit>
#include <cmath>

namespace tessera {
namespace {

struct Entry {
  DType dtype;
  std::size_t size;
  std::string_view name;
  std::string_view long_name;
};

constexpr std::array<Entry, 11> kTypes{{{DType::f64, 8, "f64", "float64"},
                                        {DType::f32, 4, "f32", "float32"},
                                        {DType::f16, 2, "f16", "float16"},
                                        {DType::bf16, 2, "bf16", "bfloat16"},
                                        {DType::i64, 8, "i64", "int64"},
                                        {DType::i32, 4, "i32", "int32"},
                                        {DType::i16, 2, "i16", "int16"},
                                        {DType::i8, 1, "i8", "int8"},
                                        {DType::u8, 1, "u8", "uint8"},
                                        {DType::f8e4m3, 1, "f8e4m3", "float8_e4m3fn"},
                                        {DType::f8e5m2, 1, "f8e5m2", "float8_e5m2"}}};

}  // namespace

std::size_t size_of(DType dtype) noexcept { return kTypes[static_cast<std::size_t>(dtype)].size; }
std::string_view name_of(DType dtype) noexcept {
  return kTypes[static_cast<std::size_t>(dtype)].name;
}

std::optional<DType> dtype_from_name(std::string_view name) noexcept {
  for (const Entry& entry : kTypes)
    if (name == entry.name || name == entry.long_name) return entry.dtype;
  return std::nullopt;
}

float bf16_to_f32(std::uint16_t bits) noexcept {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

std::uint16_t f32_to_bf16(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

float f16_to_f32(std::uint16_t bits) noexcept {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1fu;
  const std::uint32_t mantissa = bits & 0x3ffu;
  if (exponent == 0) {
    const float magnitude = std::ldexp(static_cast<float>(mantissa), -24);
    return sign ? -magnitude : magnitude;
  }
  const std::uint32_t e = exponent == 31 ? 255u : exponent + 112u;
  return std::bit_cast<float>(sign | (e << 23) | (mantissa << 13));
}

std::uint16_t f32_to_f16(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return sign | 0x7e00u;
  if (magnitude >= 0x477ff000u) return sign | 0x7c00u;  // rounds to infinity
  if (magnitude < 0x38800000u) {                        // subnormal or zero: let the FPU round
    const float scaled = std::bit_cast<float>(magnitude) * 0x1p24f;
    return sign | static_cast<std::uint16_t>(std::lrint(scaled));
  }
  const std::uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  return sign | static_cast<std::uint16_t>((rounded - 0x38000000u) >> 13);
}

}  // namespace tessera
