// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "bench.hpp"
#include "tessera/kernels/adamw.hpp"
#include "tessera/kernels/rms_norm.hpp"
#include "tessera/kernels/swiglu.hpp"
#include "tessera/train/bench_device.hpp"

namespace tessera::app {

std::vector<BenchRow> bench_kernels(const train::BenchDevice& on, std::int64_t rows,
                                    std::int64_t columns) {
  const at::NoGradGuard no_grad;
  const auto options = at::TensorOptions(at::kFloat).device(on.device());
  const auto tensor = [&] { return at::ones({rows, columns}, options); };
  const at::Tensor x = tensor(), up = tensor(), out = tensor(), variance = tensor();
  const at::Tensor weight = at::ones({columns}, options);
  const auto bytes = static_cast<double>(4 * rows * columns);
  const double copy = median_seconds(on, [&] { out.copy_(x); });
  std::vector<BenchRow> figures{
      {fmt::format("copy {} x {}", rows, columns), copy, 2 * bytes / copy, 0}};
  const auto add = [&](const char* name, double passes, const std::function<void()>& work) {
    const double seconds = median_seconds(on, work);
    figures.push_back({fmt::format("{} {} x {}", name, rows, columns), seconds,
                       passes * bytes / seconds, 2 * bytes / copy});
  };
  add("rms_norm", 2, [&] { kernels::rms_norm(x, weight, 1e-5); });
  add("swiglu", 3, [&] { kernels::swiglu(x, up); });
  add("adamw", 7, [&] { kernels::adamw_sweep(x, up, out, variance, {}); });
  return figures;
}

}  // namespace tessera::app
