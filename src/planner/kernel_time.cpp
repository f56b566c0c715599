// SPDX-License-Identifier: Apache-2.0
#include "kernel_time.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "physics.hpp"

namespace tessera::planner {
namespace {

/// Tiles of a result that libraries choose from, and the rate of each to the best one: a smaller
/// tile loads more bytes of operands for each FLOP.
struct Tile {
  std::int64_t rows, columns;
  double rate;
};
constexpr std::array<Tile, 4> kTiles{
    {{128, 256, 1.0}, {128, 128, 0.92}, {64, 256, 0.85}, {64, 128, 0.75}}};
constexpr std::array<Tile, 4> kWideTiles{
    {{256, 256, 1.0}, {256, 128, 0.93}, {128, 128, 0.82}, {64, 128, 0.6}}};

std::int64_t pieces(std::int64_t whole, std::int64_t piece) { return (whole + piece - 1) / piece; }

double efficiency_of(const Tile& tile, int multiprocessors, std::int64_t rows,
                     std::int64_t columns) {
  const std::int64_t tiles = pieces(rows, tile.rows) * pieces(columns, tile.columns);
  const std::int64_t computed =
      pieces(tiles, multiprocessors) * multiprocessors * tile.rows * tile.columns;
  return tile.rate * static_cast<double>(rows) * static_cast<double>(columns) /
         static_cast<double>(computed);
}

/// With the scales of small blocks, where the format has them.
double bytes_of(Format format) {
  constexpr std::array<double, kFormats> kBytes{4, 2, 1, 0.5625};
  return kBytes[static_cast<std::size_t>(format)];
}

/// On cores: operands are packed, and the result is written, before and after the multiplication.
double host_product_seconds(const Machine& machine, Format format, const Product& product,
                            double rate) {
  const Host& node = machine.host->node;
  const bool wide = format == Format::f32;
  const double rows = product.rows * product.count;
  const double passes = product.accumulate_bytes > 0 ? 2 : 1;  // over the result
  const double elements = rows * product.inner + product.count * product.inner * product.columns +
                          passes * rows * product.columns;
  const double bandwidth = machine.host->speed * (wide ? node.f32_operand_bytes_per_second
                                                       : node.bf16_operand_bytes_per_second);
  return 2 * rows * product.columns * product.inner / (machine.ceiling_of(format) * rate) +
         elements * (wide ? 4 : 2) / bandwidth;
}

/// `flops` of the forward: 4 for each visible score and element of a head.
double host_attention_seconds(const Machine& machine, const AttentionWork& work, double rate) {
  const HostRank& host = *machine.host;
  const AttentionRate& measured = machine.attention.front();
  const double scores = work.flops / (4 * work.head_dim);
  const double flops = work.flops * (work.backward ? kAttentionBackward : 1);
  return flops / ((work.backward ? measured.backward : measured.forward) * rate) +
         scores /
             ((work.backward ? host.node.scores_backward : host.node.scores_forward) * host.speed);
}

/// Share of attention that is not exponentials: each score takes one, and 4 FLOPs an element of its
/// head.
double head_rate(const Machine& machine, double head_dim) {
  const double exponentials = physics::kExponentialsPerSecond * machine.multiprocessors;
  return head_dim / (head_dim + machine.peak_of(Format::bf16) / (4 * exponentials));
}

}  // namespace

double wave_efficiency(const Machine& machine, std::int64_t rows, std::int64_t columns) {
  double best = 0;
  for (const Tile& tile : machine.tile_rows >= 256 ? kWideTiles : kTiles) {
    best = std::max(best, efficiency_of(tile, machine.multiprocessors, rows, columns));
    const Tile turned{tile.columns, tile.rows, tile.rate};
    best = std::max(best, efficiency_of(turned, machine.multiprocessors, rows, columns));
  }
  return best;
}

double product_bytes(Format format, const Product& product) {
  const double rows = std::max(product.rows, 1.0) * product.count;
  const double out = product.accumulate_bytes > 0 ? product.accumulate_bytes : 2;
  return (rows * product.inner + product.count * product.inner * product.columns) *
             bytes_of(format) +
         rows * product.columns * out;
}

double product_seconds(const Machine& machine, Format format, const Product& product, double rate) {
  if (product.rows <= 0 || product.columns <= 0 || product.inner <= 0) return 0;
  if (machine.host) return host_product_seconds(machine, format, product, rate);
  const double each = std::max(product.rows, 1.0), rows = each * product.count;
  double efficiency = wave_efficiency(machine, static_cast<std::int64_t>(std::ceil(rows)),
                                      static_cast<std::int64_t>(std::ceil(product.columns)));
  if (product.count > 1) efficiency *= each / (std::ceil(each / 128) * 128);  // each group's tail
  const double compute =
      2 * rows * product.columns * product.inner / (machine.ceiling_of(format) * rate * efficiency);
  return std::max(compute, stream_seconds(machine, product_bytes(format, product))) +
         physics::kKernelSeconds;
}

double attention_seconds(const Machine& machine, AttentionKernel kernel, const AttentionWork& work,
                         double rate) {
  if (machine.host) return host_attention_seconds(machine, work, rate);
  const AttentionRate& measured = machine.attention[static_cast<std::size_t>(kernel)];
  const double ramp = work.seq / (work.seq + physics::kAttentionRamp);
  const double shape = std::min(1.0, head_rate(machine, work.head_dim) / head_rate(machine, 128));
  const double flops = work.flops * (work.backward ? kAttentionBackward : 1);
  return flops / ((work.backward ? measured.backward : measured.forward) * ramp * shape * rate) +
         physics::kKernelSeconds;
}

double stream_rate(const Machine& machine) {
  return machine.hbm_bytes_per_second * (machine.host ? 1 : physics::kHbmEfficiency);
}

double stream_seconds(const Machine& machine, double bytes) { return bytes / stream_rate(machine); }

}  // namespace tessera::planner
