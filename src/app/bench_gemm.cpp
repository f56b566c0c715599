// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "bench.hpp"
#include "tessera/kernels/matrix_product.hpp"
#include "tessera/train/bench_device.hpp"

namespace tessera::app {
namespace {

/// Normal numbers, a million of them again and again. A GPU at its power limit multiplies ones and
/// zeros with higher clocks: an H200 reached 894 TFLOP/s with zeros, and 788 with such numbers.
at::Tensor operand(const at::TensorOptions& options, std::int64_t rows, std::int64_t columns) {
  const std::int64_t count = rows * columns, some = std::min<std::int64_t>(count, 1 << 20);
  const at::Tensor numbers = at::randn({some}, at::TensorOptions(at::kFloat)).to(options);
  return numbers.repeat({(count + some - 1) / some}).narrow(0, 0, count).view({rows, columns});
}

}  // namespace

std::vector<BenchRow> bench_gemm(const train::BenchDevice& on,
                                 const std::vector<std::string>& types,
                                 const std::vector<GemmShape>& shapes) {
  std::vector<BenchRow> rows;
  for (const std::string& type : types) {
    const bool narrow = type == "bfloat16";
    const double limit = on.peak(narrow ? DType::bf16 : DType::f32).flops;
    for (const GemmShape& s : shapes) {
      const auto options =
          at::TensorOptions(narrow ? at::kBFloat16 : at::kFloat).device(on.device());
      const at::Tensor a = operand(options, s.m, s.k), b = operand(options, s.k, s.n);
      const double seconds = median_seconds(on, [&] { kernels::mm(a, b); });
      rows.push_back({fmt::format("{} {} x {} x {}", type, s.m, s.k, s.n), seconds,
                      2.0 * static_cast<double>(s.m * s.k) * static_cast<double>(s.n) / seconds,
                      limit});
    }
  }
  return rows;
}

}  // namespace tessera::app
