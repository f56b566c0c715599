// SPDX-License-Identifier: Apache-2.0
// Matrix products of the debug Llama and of a 45M-parameter one, by engine: float32 in MKL (at::mm)
// and in oneDNN, bfloat16 as Tessera multiplies it and as LibTorch does. One thread; processor
// time, medians of alternating runs, in GFLOP/s.
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <vector>

#include "tessera/kernels/instruction_set.hpp"
#include "tessera/kernels/matrix_product.hpp"
#include "tessera/kernels/tensor.hpp"
#include "tessera/kernels/torch_internal.hpp"

namespace {

using namespace tessera;
using at::Tensor;

double processor_seconds() {
  timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

struct Shape {
  const char* name;
  std::int64_t tokens, in, out;
};
constexpr Shape kShapes[] = {{"attention 256", 2048, 256, 256},
                             {"gate 256", 2048, 256, 768},
                             {"down 256", 2048, 768, 256},
                             {"head 256", 2048, 256, 2000},
                             {"microbatch 256", 256, 256, 256},
                             {"gate 512", 2048, 512, 1536},
                             {"tensor-parallel half", 2048, 256, 384}};

/// LibTorch refuses to call oneDNN for processors without AVX-512: then the figure has no meaning.
void in_onednn(const Tensor& a, const Tensor& b, const Tensor& out) {
  if (kernels::instruction_set() == kernels::InstructionSet::avx512)
    kernels::mm_in_onednn(out, a, b, 0);
}

/// GFLOP/s of each way to compute a b, by turns.
std::vector<double> rates(const Tensor& a, const Tensor& b) {
  const Tensor half_a = a.to(at::kBFloat16), half_b = b.to(at::kBFloat16);
  const Tensor out = at::empty({a.size(0), b.size(1)});
  const std::vector<std::function<void()>> ways{
      [&] { at::mm(a, b); }, [&] { in_onednn(a, b, out); }, [&] { kernels::mm(half_a, half_b); },
      [&] { at::mm(half_a, half_b); }};
  std::vector<std::vector<double>> seconds(ways.size());
  for (int run = -1; run < 5; ++run)
    for (std::size_t way = 0; way < ways.size(); ++way) {
      const double start = processor_seconds();
      ways[way]();
      if (run >= 0) seconds[way].push_back(processor_seconds() - start);
    }
  std::vector<double> result;
  for (auto& times : seconds) {
    std::ranges::nth_element(times, times.begin() + 2);
    result.push_back(2e-9 * static_cast<double>(a.size(0) * a.size(1) * b.size(1)) / times[2]);
  }
  return result;
}

void show(const Shape& shape, const char* pass, const Tensor& a, const Tensor& b) {
  const auto r = rates(a, b);
  std::printf("%-22s %-8s %8.1f %8.1f %6.2f %10.1f %10.1f %6.2f\n", shape.name, pass, r[0], r[1],
              r[1] / r[0], r[2], r[3], r[2] / r[3]);
}

}  // namespace

int main() {
  at::set_num_threads(1);
  const at::NoGradGuard no_grad;
  std::printf("kernels: %s\n%-22s %-8s %8s %8s %6s %10s %10s %6s\n",
              kernels::host_engines().c_str(), "shape", "pass", "MKL", "oneDNN", "ratio",
              "bf16 ours", "LibTorch", "ratio");
  for (const Shape& shape : kShapes) {
    const Tensor x = at::randn({shape.tokens, shape.in}), w = at::randn({shape.out, shape.in}),
                 g = at::randn({shape.tokens, shape.out});
    show(shape, "forward", x, w.t());
    show(shape, "input", g, w);
    show(shape, "weight", g.t(), x);
  }
}
