// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "bench.hpp"
#include "tessera/kernels/matrix_product.hpp"
#include "tessera/train/bench_device.hpp"

namespace tessera::app {

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
      const at::Tensor a = at::ones({s.m, s.k}, options), b = at::ones({s.k, s.n}, options);
      const double seconds = median_seconds(on, [&] { kernels::mm(a, b); });
      rows.push_back({fmt::format("{} {} x {} x {}", type, s.m, s.k, s.n), seconds,
                      2.0 * static_cast<double>(s.m * s.k) * static_cast<double>(s.n) / seconds,
                      limit});
    }
  }
  return rows;
}

}  // namespace tessera::app
