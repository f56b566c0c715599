// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "bench.hpp"
#include "tessera/kernels/adamw.hpp"
#include "tessera/kernels/host_kernels.hpp"
#include "tessera/kernels/rms_norm.hpp"
#include "tessera/kernels/swiglu.hpp"
#include "tessera/train/setup.hpp"

namespace tessera::app {

std::vector<BenchRow> bench_kernels(comm::World& world, std::int64_t rows, std::int64_t columns) {
  train::use_share_of_cores(world);
  kernels::choose_host_kernels("auto");
  const at::NoGradGuard no_grad;
  const auto tensor = [&] { return at::ones({rows, columns}, at::TensorOptions(at::kFloat)); };
  const at::Tensor x = tensor(), up = tensor(), out = tensor(), variance = tensor();
  const at::Tensor weight = at::ones({columns}, at::TensorOptions(at::kFloat));
  const auto bytes = static_cast<double>(4 * rows * columns);
  const double copy = median_seconds(world.control(), [&] { out.copy_(x); });
  std::vector<BenchRow> figures{
      {fmt::format("copy {} x {}", rows, columns), copy, 2 * bytes / copy, 0}};
  const auto add = [&](const char* name, double passes, const std::function<void()>& work) {
    const double seconds = median_seconds(world.control(), work);
    figures.push_back({fmt::format("{} {} x {}", name, rows, columns), seconds,
                       passes * bytes / seconds, 2 * bytes / copy});
  };
  add("rms_norm", 2, [&] { kernels::rms_norm(x, weight, 1e-5); });
  add("swiglu", 3, [&] { kernels::swiglu(x, up); });
  add("adamw", 7, [&] { kernels::adamw_sweep(x, up, out, variance, {}); });
  return figures;
}

}  // namespace tessera::app
