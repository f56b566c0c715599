// SPDX-License-Identifier: Apache-2.0
#include "host_float8.hpp"

#include "device_results.hpp"
#include "host_kernel.hpp"

namespace tessera::sim {

using at::Tensor;
using kernels::ScaledBytes;
using kernels::ScaledLines;

namespace {

kernels::ScaleBlock block_of(ScaledLines lines) {
  kernels::ScaleBlock block;
  if (lines == ScaledLines::rows) block.rows = 1;
  if (lines == ScaledLines::columns) block.columns = 1;
  return block;
}

ScaledBytes twin_of(HostKernel& kernel, const ScaledBytes& result) {
  return {kernel.writes(result.bytes), kernel.writes(result.scales), result.type, result.block,
          kernel.writes(result.inverses)};
}

void copy_into(const ScaledBytes& twin, const ScaledBytes& made) {
  twin.bytes.copy_(made.bytes);
  twin.scales.copy_(made.scales);
  twin.inverses.copy_(made.scales.reciprocal());
}

}  // namespace

Tensor largest_of_lines(const Tensor& x, ScaledLines lines) {
  const Tensor largest = kernels::device::line_magnitudes(x, lines);
  HostKernel kernel("largest_of_lines", x);
  kernel.issue([x = kernel.reads(x), lines, largest = kernel.writes(largest)] {
    largest.copy_(kernels::largest_magnitudes(x, block_of(lines)));
  });
  return largest;
}

kernels::Float8Scales float8_scales(const Tensor& largest, DType type, bool powers_of_two) {
  const kernels::Float8Scales made =
      kernels::device::float8_scales(largest, largest.size(0), largest.size(1));
  HostKernel kernel("float8_scales", largest);
  kernel.issue([largest = kernel.reads(largest), type, powers_of_two,
                scales = kernel.writes(made.scales), inverses = kernel.writes(made.inverses)] {
    scales.copy_(kernels::scales_for(largest, type, powers_of_two));
    inverses.copy_(scales.reciprocal());
  });
  return made;
}

void float8_bytes(const Tensor& x, const Tensor& scales, DType type, kernels::ByteOrder order,
                  const Tensor& to) {
  const bool all = scales.numel() == 1, rows = order == kernels::ByteOrder::rows;
  const auto lines = all ? ScaledLines::all : rows ? ScaledLines::rows : ScaledLines::columns;
  HostKernel kernel("float8_bytes", x);
  kernel.issue(
      [x = kernel.reads(x), scales = kernel.reads(scales), type, lines, bytes = kernel.writes(to)] {
        bytes.copy_(kernels::to_bytes(x, scales, type, block_of(lines)).bytes);
      });
}

kernels::ScaledBytes float8_rows(const Tensor& x, DType type, bool powers_of_two) {
  const kernels::ScaledBytes result = kernels::device::float8_rows(x, type);
  HostKernel kernel("float8_rows", x);
  kernel.issue([x = kernel.reads(x), type, powers_of_two, twin = twin_of(kernel, result)] {
    copy_into(twin, kernels::to_scaled_bytes(x, type, powers_of_two, block_of(ScaledLines::rows)));
  });
  return result;
}

kernels::ScaledBothWays float8_both(const Tensor& x, DType type, bool powers_of_two) {
  const kernels::ScaledBothWays result = kernels::device::float8_both(x, type).results;
  HostKernel kernel("float8_both", x);
  kernel.issue([x = kernel.reads(x), type, powers_of_two, rows = twin_of(kernel, result.rows),
                columns = twin_of(kernel, result.columns)] {
    const kernels::ScaledBothWays made = kernels::to_scaled_both_ways(x, type, powers_of_two);
    copy_into(rows, made.rows);
    copy_into(columns, made.columns);
  });
  return result;
}

}  // namespace tessera::sim
