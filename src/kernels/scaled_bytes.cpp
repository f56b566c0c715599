// SPDX-License-Identifier: Apache-2.0
#define TESSERA_ISA_NAMESPACE scaled
#include "tessera/kernels/scaled_bytes.hpp"

#include <bit>
#include <cmath>
#include <type_traits>

#include "backend.hpp"
#include "device_scaled_bytes.hpp"
#include "float8.hpp"
#include "float8_formats.hpp"
#include "host/run.hpp"
#include "stored.hpp"
#include "tessera/base/error.hpp"
#include "tessera/kernels/matrix_product.hpp"

namespace tessera::kernels {
namespace {

using at::Tensor;
using scaled::E4m3;
using scaled::E5m2;
using scaled::narrow;
using scaled::wide;

template <class Body>
decltype(auto) with_format(DType type, const Body& body) {
  TESSERA_EXPECT(type == DType::f8e4m3 || type == DType::f8e5m2, "{} is no 8-bit float",
                 name_of(type));
  return type == DType::f8e4m3 ? body(E4m3{}) : body(E5m2{});
}

/// Bits of magnitudes order as the magnitudes do, and a NaN's are above all others.
template <class T>
using Bits = std::conditional_t<sizeof(T) == 8, std::int64_t,
                                std::conditional_t<sizeof(T) == 4, std::int32_t, std::int16_t>>;

template <class T>
Bits<T> magnitude(T v) {
  return static_cast<Bits<T>>(std::bit_cast<Bits<T>>(v) & std::numeric_limits<Bits<T>>::max());
}

/// body(block, begin, end) for the blocks of [0, size).
template <class Body>
void for_blocks(std::int64_t size, std::int64_t block, const Body& body) {
  for (std::int64_t b = 0, begin = 0; begin < size; ++b) {
    const std::int64_t end = size - begin > block ? begin + block : size;
    body(b, begin, end);
    begin = end;
  }
}

/// Of one row, in blocks of columns: into[b] = at least what it is.
template <class T>
void raise(Bits<T>* into, const T* row, std::int64_t columns, std::int64_t block) {
  if (block == 1) {
    for (std::int64_t j = 0; j < columns; ++j) into[j] = std::max(into[j], magnitude(row[j]));
    return;
  }
  for_blocks(columns, block, [&](std::int64_t b, std::int64_t begin, std::int64_t end) {
    Bits<T> most = into[b];
    for (std::int64_t j = begin; j < end; ++j) most = std::max(most, magnitude(row[j]));
    into[b] = most;
  });
}

/// Threads take parts of the columns where each has a scale of its own, else rows.
template <class T>
std::vector<Bits<T>> largest_bits(const Tensor& x, ScaleBlock block) {
  const std::int64_t rows = x.size(0), columns = x.size(1);
  const std::int64_t down = blocks_in(rows, block.rows), across = blocks_in(columns, block.columns);
  const T* data = const_pointer<T>(x);
  const std::int64_t stride = x.stride(0);
  std::vector<Bits<T>> result(static_cast<std::size_t>(down * across), 0);
  if (block.columns == 1) {
    parallel_for(
        0, columns, std::max<std::int64_t>(64, elements_per_task / std::max<std::int64_t>(1, rows)),
        [&](std::int64_t begin, std::int64_t end) {
          for_blocks(rows, block.rows, [&](std::int64_t b, std::int64_t first, std::int64_t last) {
            for (std::int64_t i = first; i < last; ++i)
              raise(result.data() + b * across + begin, data + i * stride + begin, end - begin, 1);
          });
        });
    return result;
  }
  std::vector<Bits<T>> of_rows(static_cast<std::size_t>(rows * across), 0);
  for_rows(rows, columns, [&](std::int64_t first, std::int64_t count) {
    for (std::int64_t i = first; i < first + count; ++i)
      raise(of_rows.data() + i * across, data + i * stride, columns, block.columns);
  });
  if (block.rows == 1) return of_rows;
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t b = 0; b < across; ++b) {
      Bits<T>& most = result[static_cast<std::size_t>(i / block.rows * across + b)];
      most = std::max(most, of_rows[static_cast<std::size_t>(i * across + b)]);
    }
  return result;
}

/// Element j has scale[j * Step].
template <class Format, int Step, class T>
void write(std::uint8_t* __restrict to, const T* __restrict from, const float* __restrict scale,
           std::int64_t count) {
  for (std::int64_t j = 0; j < count; ++j)
    to[j] = Format::byte_of(static_cast<float>(wide(from[j]) * scale[j * Step]));
}
template <class Format, int Step, class T>
void read(T* __restrict to, const std::uint8_t* __restrict from, const float* __restrict scale,
          std::int64_t count) {
  for (std::int64_t j = 0; j < count; ++j)
    to[j] = narrow<T>(static_cast<Compute<T>>(Format::value_of(from[j])) / scale[j * Step]);
}

/// body(row, begin, count, scale, step) for runs of elements with one scale, and step 0, or each
/// with its own, and step 1.
template <class Body>
void for_scaled(const ScaledBytes& x, const Body& body) {
  const std::int64_t columns = x.bytes.size(1), across = x.scales.size(1);
  const float* scales = const_pointer<float>(x.scales);
  for_rows(x.bytes.size(0), columns, [&](std::int64_t first, std::int64_t count) {
    for (std::int64_t i = first; i < first + count; ++i) {
      const float* of_row = scales + i / x.block.rows * across;
      if (x.block.columns == 1)
        body(i, 0, columns, of_row, std::integral_constant<int, 1>());
      else
        for_blocks(columns, x.block.columns,
                   [&](std::int64_t b, std::int64_t begin, std::int64_t end) {
                     body(i, begin, end - begin, of_row + b, std::integral_constant<int, 0>());
                   });
    }
  });
}

void expect_fitting(const Tensor& x, const Tensor& scales, ScaleBlock block) {
  TESSERA_EXPECT(x.dim() == 2 && scales.dim() == 2 && x.device() == scales.device() &&
                     scales.scalar_type() == at::kFloat && scales.is_contiguous() &&
                     scales.size(0) == blocks_in(x.size(0), block.rows) &&
                     scales.size(1) == blocks_in(x.size(1), block.columns),
                 "scales do not fit the blocks of a matrix");
}

}  // namespace

double largest_number(DType type) {
  return with_format(type, [](auto format) { return double{format.largest}; });
}

Tensor largest_magnitudes(const Tensor& of, ScaleBlock block) {
  TESSERA_EXPECT(of.dim() == 2, "the magnitudes of {} dims", of.dim());
  if (!of.is_cpu()) return on_device::largest_magnitudes(of, block);
  const Tensor x = rows_of(of).tensor;
  return with_type(x.scalar_type(), [&](auto zero) {
    using T = decltype(zero);
    const std::vector<Bits<T>> bits = largest_bits<T>(x, block);
    const Tensor result =
        at::empty({blocks_in(x.size(0), block.rows), blocks_in(x.size(1), block.columns)},
                  x.options().dtype(sizeof(T) == 8 ? at::kDouble : at::kFloat));
    auto* out = pointer<Compute<T>>(result);
    for (std::size_t i = 0; i < bits.size(); ++i) out[i] = wide(std::bit_cast<T>(bits[i]));
    return result;
  });
}

Tensor scales_for(const Tensor& largest, DType type, bool powers_of_two) {
  if (!largest.is_cpu()) return on_device::scales_for(largest, type, powers_of_two);
  const double most = largest_number(type);
  const Tensor scales = at::empty(largest.sizes(), largest.options().dtype(at::kFloat));
  const Tensor wide = largest.to(at::kDouble).contiguous();
  const auto* from = const_pointer<double>(wide);
  auto* to = pointer<float>(scales);
  for (std::int64_t i = 0; i < wide.numel(); ++i) {
    const double size = from[i] < 1e-12 ? 1e-12 : from[i];
    const auto scale = static_cast<float>(most / size);
    const bool rounds = powers_of_two && scale > 0 && std::isfinite(scale);
    to[i] = rounds ? std::ldexp(1.0F, std::ilogb(scale)) : scale;
  }
  return scales;
}

void write_bytes(const Tensor& bytes, const Tensor& of, const Tensor& scales, DType type,
                 ScaleBlock block) {
  expect_fitting(of, scales, block);
  TESSERA_EXPECT(bytes.sizes() == of.sizes() && bytes.is_contiguous(), "bytes of another matrix");
  if (!of.is_cpu()) return on_device::write_bytes(bytes, of, scales, type, block);
  const Tensor x = rows_of(of).tensor;
  with_type(x.scalar_type(), [&](auto zero) {
    using T = decltype(zero);
    with_format(type, [&](auto format) {
      using Format = decltype(format);
      const std::int64_t stride = x.stride(0), columns = x.size(1);
      const T* from = const_pointer<T>(x);
      auto* to = pointer<std::uint8_t>(bytes);
      for_scaled(
          {bytes, scales, type, block}, [&](std::int64_t i, std::int64_t begin, std::int64_t count,
                                            const float* scale, auto step) {
            write<Format, step>(to + i * columns + begin, from + i * stride + begin, scale, count);
          });
    });
  });
}

ScaledBytes to_bytes(const Tensor& x, const Tensor& scales, DType type, ScaleBlock block,
                     ByteOrder order) {
  expect_fitting(x, scales, block);
  if (!x.is_cpu()) return on_device::to_bytes(x, scales, type, block, order);
  const Tensor bytes = at::empty(x.sizes(), x.options().dtype(at::kByte));
  write_bytes(bytes, x, scales, type, block);
  return {bytes, scales, type, block};
}

ScaledBytes to_scaled_bytes(const Tensor& x, DType type, bool powers_of_two, ScaleBlock block,
                            ByteOrder order) {
  if (!x.is_cpu()) return on_device::to_scaled_bytes(x, type, powers_of_two, block, order);
  const Tensor scales = scales_for(largest_magnitudes(x, block), type, powers_of_two);
  return to_bytes(x, scales, type, block, order);
}

ScaledBothWays to_scaled_both_ways(const Tensor& x, DType type, bool powers_of_two) {
  if (!x.is_cpu() && x.numel() > 0)
    return backend_of(x).float8_both(rows_of(x).tensor, type, powers_of_two);
  constexpr auto whole = ScaleBlock::whole;
  return {to_scaled_bytes(x, type, powers_of_two, {1, whole}, ByteOrder::rows),
          to_scaled_bytes(x, type, powers_of_two, {whole, 1}, ByteOrder::columns)};
}

Tensor from_bytes(const ScaledBytes& x, at::ScalarType type) {
  expect_fitting(x.bytes, x.scales, x.block);
  if (!x.bytes.is_cpu()) return on_device::from_bytes(x, type);
  const Tensor result = at::empty(x.bytes.sizes(), x.bytes.options().dtype(type));
  with_type(type, [&](auto zero) {
    using T = decltype(zero);
    with_format(x.type, [&](auto format) {
      using Format = decltype(format);
      const std::int64_t columns = x.bytes.size(1);
      const auto* from = const_pointer<std::uint8_t>(x.bytes);
      T* to = pointer<T>(result);
      for_scaled(x, [&](std::int64_t i, std::int64_t begin, std::int64_t count, const float* scale,
                        auto step) {
        read<Format, step>(to + i * columns + begin, from + i * columns + begin, scale, count);
      });
    });
  });
  return result;
}

ScaledBytes transposed(const ScaledBytes& x) {
  return {x.bytes.t(),
          x.scales.t(),
          x.type,
          {x.block.columns, x.block.rows},
          x.inverses.defined() ? x.inverses.t() : x.inverses};
}

Tensor scaled_mm(const ScaledBytes& a, const ScaledBytes& b, bool fast) {
  TESSERA_EXPECT(
      a.bytes.size(1) == b.bytes.size(0) && a.scales.size(1) <= 1 && b.scales.size(0) <= 1,
      "a product of {} and {} elements, with {} and {} scales along them", a.bytes.size(1),
      b.bytes.size(0), a.scales.size(1), b.scales.size(0));
  if (!a.bytes.is_cpu()) return on_device::scaled_mm(a, b, fast);
  const auto value = [](const ScaledBytes& x) { return from_bytes(x, at::kFloat); };
  return kernels::mm(value(a), value(b)).to(at::kBFloat16);
}

}  // namespace tessera::kernels
