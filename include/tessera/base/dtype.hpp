// SPDX-License-Identifier: Apache-2.0
// Element types that travel through communicators, checkpoints and token files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace tessera {

enum class DType : std::uint8_t { f64, f32, f16, bf16, i64, i32, i16, i8, u8, f8e4m3, f8e5m2 };

/// Elements of a block of the MX formats, which share a scale.
inline constexpr std::int64_t mx_block = 32;

/// Bytes of one element.
std::size_t size_of(DType dtype) noexcept;

/// Short name as used in files and messages: "f64", "f32", "f16", "bf16", "i64", "i32", "i16",
/// "i8", "u8", "f8e4m3", "f8e5m2".
std::string_view name_of(DType dtype) noexcept;

/// Inverse of name_of; also takes "float64", "float32", "float16", "bfloat16". Empty for anything
/// else.
std::optional<DType> dtype_from_name(std::string_view name) noexcept;

/// bfloat16 <-> float32, round to nearest even, NaN kept.
float bf16_to_f32(std::uint16_t bits) noexcept;
std::uint16_t f32_to_bf16(float value) noexcept;
/// IEEE binary16 <-> float32, round to nearest even.
float f16_to_f32(std::uint16_t bits) noexcept;
std::uint16_t f32_to_f16(float value) noexcept;

}  // namespace tessera
