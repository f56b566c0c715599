// SPDX-License-Identifier: Apache-2.0
#include "tessera/kernels/mx_scales.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "device_scaled_bytes.hpp"
#include "float8.hpp"
#include "typed.hpp"

namespace tessera::kernels {
namespace {

using at::Tensor;

constexpr int kNanScale = 255;

int exponent_bits(float v) { return static_cast<int>(std::bit_cast<std::uint32_t>(v) >> 23) & 255; }
std::uint32_t mantissa_bits(float v) { return std::bit_cast<std::uint32_t>(v) & 0x7fffffu; }

int scale_byte(float largest, float most, MxScale how) {
  if (std::isnan(largest)) return kNanScale;
  if (how == MxScale::floor) return std::max(0, exponent_bits(largest) - std::ilogb(most));
  const float scale = largest / most;
  if (std::isinf(scale)) return kNanScale - 1;
  // 2^-127 has half the mantissa of the smallest normal number.
  if (exponent_bits(scale) == 0) return mantissa_bits(scale) > 0x400000u;
  return std::min(kNanScale - 1, exponent_bits(scale) + (mantissa_bits(scale) > 0));
}

float read_factor(int byte) {
  return byte == kNanScale ? std::numeric_limits<float>::quiet_NaN() : std::ldexp(1.0F, 127 - byte);
}

float stored_factor(int byte, MxScale how) {
  if (how == MxScale::floor)
    return byte == kNanScale ? 0.0F : std::ldexp(1.0F, std::min(126, 127 - byte));
  return byte == 0 ? 1.0F : read_factor(byte);
}

}  // namespace

MxScales mx_scales(const Tensor& largest, DType type, MxScale how) {
  if (!largest.is_cpu()) return on_device::mx_scales(largest, type, how);
  const auto most = static_cast<float>(largest_number(type));
  const Tensor magnitudes = largest.to(at::kFloat).contiguous();
  const auto* from = const_pointer<float>(magnitudes);
  MxScales scales{at::empty(largest.sizes(), largest.options().dtype(at::kByte)),
                  at::empty(largest.sizes(), largest.options().dtype(at::kFloat)),
                  at::empty(largest.sizes(), largest.options().dtype(at::kFloat))};
  auto* bytes = pointer<std::uint8_t>(scales.bytes);
  auto* stored = pointer<float>(scales.stored);
  auto* read = pointer<float>(scales.read);
  for (std::int64_t i = 0; i < magnitudes.numel(); ++i) {
    const int byte = scale_byte(from[i], most, how);
    bytes[i] = static_cast<std::uint8_t>(byte);
    stored[i] = stored_factor(byte, how);
    read[i] = read_factor(byte);
  }
  return scales;
}

ScaledBytes to_mx_bytes(const Tensor& x, DType type, MxScale how, ScaleBlock block,
                        ByteOrder order) {
  const MxScales scales = mx_scales(largest_magnitudes(x, block), type, how);
  ScaledBytes bytes = to_bytes(x, scales.stored, type, block, order);
  bytes.scales = scales.read;
  return bytes;
}

}  // namespace tessera::kernels
