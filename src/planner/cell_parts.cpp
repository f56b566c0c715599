// SPDX-License-Identifier: Apache-2.0
#include "cell_parts.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "physics.hpp"

namespace tessera::planner {
namespace {

/// Bytes moved for each element that is cast, row-wise and column-wise copies together.
struct CastBytes {
  double activation, gradient, weight;
};

CastBytes cast_bytes(Precision precision, bool grouped) {
  switch (precision) {
    case Precision::fp8_delayed:  // fused into the kernel that makes the activation, but for
                                  // experts
      return {grouped ? 4.0 : 2.0, 4, 4};
    case Precision::fp8_current:  // one more pass for the largest value
    case Precision::fp8_torchao:
      return {6, 6, 6};
    case Precision::mxfp8:  // reads 2, writes 2 x 1 and scales
      return {4.1, 4.1, 4.1};
    case Precision::nvfp4:  // largest value, read, transform, write 2 x 0.56
      return {5.2, 5.2, 5.2};
    default:
      return {0, 0, 0};
  }
}

}  // namespace

void CellParts::note(const std::string& name, double flops, double bytes, double seconds) const {
  if (kernels) kernels->push_back({name, flops, bytes, seconds});
}

void CellParts::linear(double rows, double out, double in, const Linear& how) {
  const Format format = how.format.value_or(format_of(work.precision));
  const Category category = how.experts > 1 ? Category::grouped : Category::gemm;
  const bool blocks = work.precision == Precision::mxfp8 && format == Format::fp8;
  const double rate = product_rate() * (blocks ? physics::kBlockScaledRate : 1);
  const auto seconds = [&](const Product& product) {
    return product_seconds(machine, format, product, rate);
  };
  const double forward = seconds({rows, out, in, how.experts});
  time.forward[category] += forward;
  time.input[category] += seconds({rows, in, out, how.experts});
  time.weight[category] += seconds({out, in, rows, how.experts, 2 * stack.gradient_bytes});
  if (how.again) time.recomputed[category] += forward;
  if (kernels)
    note(fmt::format("{:.0f} x {:.0f}", in, out), 2 * rows * how.experts * out * in,
         product_bytes(format, {rows, out, in, how.experts}), forward);
  if (format == Format::fp8 || format == Format::fp4) quantise(rows, out, in, how);
}

void CellParts::quantise(double rows, double out, double in, const Linear& how) {
  const CastBytes bytes = cast_bytes(work.precision, how.experts > 1);
  const double activation = how.quantised ? bytes.activation * rows * how.experts * in : 0;
  const bool in_bytes = work.in_bytes && how.experts <= 1;
  const double elements = how.experts * out * in;
  const double weight = stack.recast_weights && !in_bytes ? bytes.weight * elements : 0;
  const double forward = stream_seconds(machine, activation + weight);
  time.forward[Category::quantise] += forward;
  // Bytes that were gathered are copied in the other order.
  time.input[Category::quantise] += stream_seconds(
      machine, bytes.gradient * rows * how.experts * out + (in_bytes ? 2 * elements : 0));
  if (how.again) time.recomputed[Category::quantise] += forward;
}

void CellParts::stream(double forward_bytes, double backward_bytes, bool again, double factor) {
  // Bytes are counted for elements of two.
  const double traffic = (factor > 0 ? factor : stack.traffic) * element_bytes(work.precision) / 2;
  const double forward = stream_seconds(machine, forward_bytes * traffic);
  time.forward[Category::stream] += forward;
  note("memory-bound", forward_bytes * traffic, forward_bytes * traffic, forward);
  time.input[Category::stream] += stream_seconds(machine, backward_bytes * traffic);
  if (again) time.recomputed[Category::stream] += forward;
}

void CellParts::tensor_parallel(bool again) {
  if (work.tp == 1) return;
  const double bytes =
      tokens() * static_cast<double>(work.model.dim) * element_bytes(work.precision);
  const bool overlaps =
      (stack.tp_overlap && format_of(work.precision) != Format::fp4) || work.async_tp;
  const double call =
      gather_seconds(machine, bytes, group_of(machine, work.tp, 1)) + turn_seconds(machine);
  const double seconds = 2 * call * (overlaps ? stack.tp_exposed : 1);
  time.forward[Category::tp] += seconds;
  time.input[Category::tp] += seconds;
  // TorchTitan's "op" keeps sums of ranks, and gathers again.
  const double calls = again ? 2 : half_products_again() ? 1 : 0;
  time.recomputed[Category::tp] += seconds * calls / 2;
  time.calls += 4 + calls;
}

void CellParts::gather_logits() {
  if (work.tp == 1) return;
  const double bytes =
      tokens() * static_cast<double>(work.model.vocab) * element_bytes(work.precision);
  time.forward[Category::tp] +=
      gather_seconds(machine, bytes, group_of(machine, work.tp, 1)) + turn_seconds(machine);
  time.forward[Category::loss] += stream_seconds(machine, 2 * bytes);  // in the order of columns
  ++time.calls;
}

void CellParts::feed_forward(double hidden) {
  const double in = static_cast<double>(work.model.dim), out = hidden / work.tp;
  const bool gated = work.model.gated, elementwise = recompute == Recompute::every_second_mm;
  const bool again = attention_again() || recompute == Recompute::feed_forward;
  if (gated && half_products_again()) {
    linear(tokens(), out, in);
    linear(tokens(), out, in, {.again = true, .quantised = false});
  } else {
    linear(tokens(), (gated ? 2 : 1) * out, in, {.again = again});
  }
  linear(tokens(), in, out, {.again = full() && !stops_early()});
  // SwiGLU reads two and writes one; its gradient reads three and writes two.
  stream((gated ? 6 : 4) * out * tokens(), (gated ? 10 : 6) * out * tokens(), again || elementwise);
  stream(10 * in * rows(), 8 * in * rows(), again || elementwise);  // norm, and the sum
  tensor_parallel(attention_again());
}

}  // namespace tessera::planner
