// SPDX-License-Identifier: Apache-2.0
// LibTorch divides device tensors by a number as it multiplies by its reciprocal, which rounds
// twice. So what divides here is a tensor.
#include "device_scaled_bytes.hpp"

#include <ATen/ops/_scaled_mm.h>
#include <ATen/ops/constant_pad_nd.h>

#include <cmath>
#include <limits>
#include <optional>

#include "backend.hpp"
#include "device_results.hpp"
#include "float8.hpp"
#include "tessera/kernels/accumulation_type.hpp"

namespace tessera::kernels::on_device {
namespace {

using at::Tensor;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int kExponentPlace = 23;  ///< of float32
constexpr int kSignAndExponent = static_cast<int>(0xff800000u);
constexpr int kBias = 127;  ///< of float32 and of E8M0
constexpr int kNanScale = 255;

/// cuBLASLt's and CUTLASS's unit of sizes in float8.
constexpr std::int64_t kMultiple = 16;

at::ScalarType scalar_type(DType type) {
  return type == DType::f8e4m3 ? at::kFloat8_e4m3fn : at::kFloat8_e5m2;
}

Tensor padded(const Tensor& x, std::int64_t rows, std::int64_t columns) {
  const std::int64_t down = rows - x.size(0), right = columns - x.size(1);
  return down == 0 && right == 0 ? x : at::constant_pad_nd(x, {0, right, 0, down});
}

std::int64_t up_to_multiple(std::int64_t size, std::int64_t of) {
  return (size + of - 1) / of * of;
}

/// Over blocks of `block` elements along `dim`.
Tensor largest_along(const Tensor& x, int dim, std::int64_t block) {
  const std::int64_t size = x.size(dim);
  if (block == 1) return x;
  if (block >= size) return at::linalg_vector_norm(x, kInfinity, dim, true);
  const std::int64_t whole = up_to_multiple(size, block);
  const Tensor full = padded(x, dim == 0 ? whole : x.size(0), dim == 1 ? whole : x.size(1));
  return at::linalg_vector_norm(full.unflatten(dim, {whole / block, block}), kInfinity, dim + 1);
}

/// A scale for each of `size` elements along `dim`, or one for all.
Tensor spread_along(const Tensor& scales, int dim, std::int64_t size, std::int64_t block) {
  if (block == 1 || block >= size) return scales;
  std::vector<std::int64_t> shape = scales.sizes().vec();
  shape.insert(shape.begin() + dim + 1, block);
  return scales.unsqueeze(dim + 1).expand(shape).flatten(dim, dim + 1).narrow(dim, 0, size);
}

Tensor spread(const Tensor& scales, const Tensor& x, ScaleBlock block) {
  return spread_along(spread_along(scales, 0, x.size(0), block.rows), 1, x.size(1), block.columns);
}

Tensor bits_of(const Tensor& x) { return x.view(at::kInt); }

/// 2^(exponents - 127), down to 2^-127.
Tensor powers_of_two(const Tensor& exponents) {
  const Tensor normal = exponents.bitwise_left_shift(kExponentPlace);
  return at::where(exponents.eq(0), at::full({}, 1 << (kExponentPlace - 1), normal.options()),
                   normal)
      .view(at::kFloat);
}

/// The lines of a block that a kernel knows.
std::optional<ScaledLines> lines_of(const Tensor& x, ScaleBlock block) {
  const bool down = block.rows >= x.size(0), across = block.columns >= x.size(1);
  if (x.numel() == 0 || backend_of(x).largest_of_lines == nullptr) return std::nullopt;
  if (block.rows == 1 && across) return ScaledLines::rows;
  if (block.columns == 1 && down) return ScaledLines::columns;
  return down && across ? std::optional(ScaledLines::all) : std::nullopt;
}

}  // namespace

Tensor largest_magnitudes(const Tensor& x, ScaleBlock block) {
  if (const auto lines = lines_of(x, block))
    return backend_of(x).largest_of_lines(rows_of(x).tensor, *lines);
  if (x.numel() == 0)
    return at::zeros({blocks_in(x.size(0), block.rows), blocks_in(x.size(1), block.columns)},
                     x.options().dtype(accumulation_type(x)));
  if (block.rows == 1 && block.columns == 1) return x.abs().to(accumulation_type(x));
  if (block.rows >= x.size(0) && block.columns >= x.size(1))
    return at::linalg_vector_norm(x, kInfinity).to(accumulation_type(x)).view({1, 1});
  return largest_along(largest_along(x, 1, block.columns), 0, block.rows).to(accumulation_type(x));
}

Tensor scales_for(const Tensor& largest, DType type, bool powers_of_two) {
  if (backend_of(largest).float8_scales != nullptr && largest.numel() > 0)
    return backend_of(largest).float8_scales(largest.contiguous(), type, powers_of_two).scales;
  const Tensor sizes = largest.to(at::kDouble).clamp_min(1e-12);
  const Tensor scales =
      at::full({}, largest_number(type), sizes.options()).div(sizes).to(at::kFloat).contiguous();
  if (!powers_of_two) return scales;
  const Tensor powers = bits_of(scales).bitwise_and(kSignAndExponent).view(at::kFloat);
  return at::where(scales.isnan(), scales, powers);
}

MxScales mx_scales(const Tensor& largest, DType type, MxScale how) {
  const double most = largest_number(type);
  const Tensor sizes = largest.to(at::kFloat).contiguous();
  const bool floor = how == MxScale::floor;
  const Tensor factors = floor ? sizes : sizes.div(at::full({}, most, sizes.options()));
  const Tensor bits = bits_of(factors), exponents = bits.bitwise_right_shift(kExponentPlace);
  // Of rceil: one more above a power of two; 2^-127 has half the mantissa of the smallest normal
  // number.
  const Tensor least = at::where(exponents.eq(0), at::full({}, 0x400000, bits.options()),
                                 exponents.bitwise_left_shift(kExponentPlace));
  Tensor bytes = floor ? exponents.sub(std::ilogb(most)).clamp_min(0)
                       : exponents.add(bits.gt(least).to(at::kInt)).clamp_max(kNanScale - 1);
  bytes = at::where(sizes.isnan(), at::full({}, kNanScale, bits.options()), bytes);
  const Tensor is_nan = bytes.eq(kNanScale);
  const auto filled = [&](double value) { return at::full({}, value, sizes.options()); };
  const Tensor read = at::where(is_nan, filled(std::numeric_limits<double>::quiet_NaN()),
                                powers_of_two(bytes.neg().add(2 * kBias)));
  const Tensor stored =
      floor ? at::where(is_nan, filled(0),
                        powers_of_two(bytes.neg().add(2 * kBias).clamp_max(2 * kBias - 1)))
            : at::where(bytes.eq(0), filled(1), read);
  return {bytes.to(at::kByte), stored, read};
}

namespace {

/// Has the backend a kernel for the bytes of these blocks?
bool has_kernel(const Tensor& x, ScaleBlock block, ByteOrder order) {
  const ScaledLines along = order == ByteOrder::rows ? ScaledLines::rows : ScaledLines::columns;
  const auto lines = lines_of(x, block);
  return lines == along || lines == ScaledLines::all;
}

}  // namespace

void write_bytes(const Tensor& bytes, const Tensor& x, const Tensor& scales, DType type,
                 ScaleBlock block) {
  if (has_kernel(x, block, ByteOrder::rows))
    backend_of(x).float8_bytes(rows_of(x).tensor, scales, type, ByteOrder::rows, bytes);
  else
    bytes.copy_(on_device::to_bytes(x, scales, type, block).bytes);
}

ScaledBytes to_bytes(const Tensor& x, const Tensor& scales, DType type, ScaleBlock block,
                     ByteOrder order) {
  if (has_kernel(x, block, order)) {
    const Tensor bytes = device::float8_bytes(x, order);
    backend_of(x).float8_bytes(rows_of(x).tensor, scales, type, order, bytes);
    return {bytes, scales, type, block};
  }
  const double most = largest_number(type);
  const Tensor scaled = x.to(accumulation_type(x)).mul(spread(scales, x, block)).to(at::kFloat);
  const Tensor rounded = scaled.clamp(-most, most).to(scalar_type(type)).contiguous();
  return {rounded.view(at::kByte), scales, type, block};
}

ScaledBytes to_scaled_bytes(const Tensor& x, DType type, bool powers_of_two, ScaleBlock block,
                            ByteOrder order) {
  const auto lines = lines_of(x, block);
  if (lines == ScaledLines::rows && order == ByteOrder::rows)
    return backend_of(x).float8_rows(rows_of(x).tensor, type, powers_of_two);
  const Tensor largest = on_device::largest_magnitudes(x, block);
  if (!lines)
    return on_device::to_bytes(x, on_device::scales_for(largest, type, powers_of_two), type, block,
                               order);
  const Float8Scales made = backend_of(x).float8_scales(largest, type, powers_of_two);
  ScaledBytes result = on_device::to_bytes(x, made.scales, type, block, order);
  result.inverses = made.inverses;
  return result;
}

Tensor from_bytes(const ScaledBytes& x, at::ScalarType type) {
  const at::ScalarType wide = accumulation_type(type);
  return x.bytes.view(scalar_type(x.type))
      .to(wide)
      .div(spread(x.scales, x.bytes, x.block))
      .to(type);
}

namespace {

Tensor inverses_of(const ScaledBytes& x) {
  return x.inverses.defined() ? x.inverses : x.scales.reciprocal();
}

/// For each row of a matrix.
Tensor of_rows(const Tensor& inverses, std::int64_t rows, std::int64_t padded_rows) {
  const Tensor all = inverses.expand({rows, 1});
  return padded(all, padded_rows, 1).contiguous();
}

bool has_one_scale(const ScaledBytes& x) { return x.scales.numel() == 1; }

}  // namespace

Tensor scaled_mm(const ScaledBytes& a, const ScaledBytes& b, bool fast) {
  const std::int64_t m = a.bytes.size(0), k = a.bytes.size(1), n = b.bytes.size(1);
  const std::int64_t rows = up_to_multiple(m, kMultiple), inner = up_to_multiple(k, kMultiple),
                     columns = up_to_multiple(n, kMultiple);
  const Tensor left = padded(a.bytes, rows, inner).contiguous(),
               right = padded(b.bytes.t(), columns, inner).contiguous();
  const bool tensorwise = has_one_scale(a) && has_one_scale(b);
  const Tensor inverses_left = inverses_of(a), inverses_right = inverses_of(b);
  const Tensor of_left = tensorwise ? inverses_left.squeeze() : of_rows(inverses_left, m, rows),
               of_right = tensorwise ? inverses_right.squeeze()
                                     : of_rows(inverses_right.t(), n, columns).t();
  const Tensor result =
      at::_scaled_mm(left.view(scalar_type(a.type)), right.view(scalar_type(b.type)).t(), of_left,
                     of_right, {}, {}, at::kBFloat16, fast);
  return rows == m && columns == n ? result : result.narrow(0, 0, m).narrow(1, 0, n);
}

}  // namespace tessera::kernels::on_device
