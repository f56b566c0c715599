// SPDX-License-Identifier: Apache-2.0
// Fused kernels, the same in Kokkos, and the same arithmetic in eager LibTorch: forward and
// backward, medians of alternating runs.
#include "tessera/kernels/tensor.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <vector>

#include "tessera/kernels/cross_entropy.hpp"
#include "tessera/kernels/elementwise.hpp"
#include "tessera/kernels/exact_sum.hpp"
#include "tessera/kernels/host_kernels.hpp"
#include "tessera/kernels/operation.hpp"
#include "tessera/kernels/rms_norm.hpp"
#include "tessera/kernels/rope.hpp"
#include "tessera/kernels/swiglu.hpp"
#include "tessera/optim/adamw.hpp"

namespace {

using namespace tessera;
using at::Tensor;
using Work = std::function<void()>;

double seconds(const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double seconds_with(const char* kernels, const Work& work) {
  kernels::choose_host_kernels(kernels);
  return seconds(work);
}

/// Of nine, in milliseconds.
double median(std::vector<double>& times) {
  std::nth_element(times.begin(), times.begin() + 4, times.end());
  return times[4] * 1e3;
}

/// One line: `name ours theirs ratio target kokkos native/kokkos`, times in milliseconds, ratio =
/// ours / theirs.
void compare(const char* name, double target, const Work& ours, const Work& theirs) {
  std::vector<double> a, b, k;
  seconds_with("native", ours);
  seconds_with("kokkos", ours);
  theirs();
  for (int run = 0; run < 9; ++run) {
    a.push_back(seconds_with("native", ours));
    k.push_back(seconds_with("kokkos", ours));
    b.push_back(seconds(theirs));
  }
  const double native = median(a), kokkos = median(k), eager = median(b);
  std::printf("%-28s %9.3f %9.3f %6.2f %6.2f %9.3f %6.2f\n", name, native, eager, native / eager,
              target, kokkos, native / kokkos);
}

Tensor values(at::IntArrayRef shape, at::ScalarType dtype) { return at::randn(shape).to(dtype); }
Tensor leaf(at::IntArrayRef shape, at::ScalarType dtype) {
  return values(shape, dtype).requires_grad_();
}

/// Forward and backward of one function of leaves.
Work there_and_back(std::vector<Tensor> leaves, Tensor dy,
                    std::function<Tensor(const std::vector<Tensor>&)> function) {
  return [=] {
    kernels::run_backward({function(leaves)}, {dy});
    for (Tensor leaf : leaves) leaf.mutable_grad().reset();
  };
}

void norms(at::ScalarType dtype, const char* name) {
  const std::vector<Tensor> in{leaf({4096, 1024}, dtype), leaf({1024}, dtype)};
  const Tensor dy = values({4096, 1024}, dtype);
  compare(
      name, 0.7,
      there_and_back(in, dy, [](const auto& v) { return kernels::rms_norm(v[0], v[1], 1e-5); }),
      there_and_back(in, dy, [](const auto& v) { return at::rms_norm(v[0], {1024}, v[1], 1e-5); }));
}

void gates(at::ScalarType dtype, const char* name) {
  const std::vector<Tensor> in{leaf({4096, 1024}, dtype), leaf({4096, 1024}, dtype)};
  const Tensor dy = values({4096, 1024}, dtype);
  compare(name, 0.7,
          there_and_back(in, dy, [](const auto& v) { return kernels::swiglu(v[0], v[1]); }),
          there_and_back(in, dy, [](const auto& v) { return at::silu(v[0]) * v[1]; }));
}

void ropes(at::ScalarType dtype, const char* name) {
  const auto tables = kernels::rope_tables(1024, 64, 5e5, {}, at::kFloat);
  const Tensor turn = at::complex(tables.cos, tables.sin).unsqueeze(1);
  const std::vector<Tensor> in{leaf({4, 1024, 16, 64}, dtype)};
  const Tensor dy = values({4, 1024, 16, 64}, dtype);
  compare(
      name, dtype == at::kFloat ? 1.0 : 0.5,
      there_and_back(in, dy,
                     [&](const auto& v) { return kernels::rope(v[0], tables.cos, tables.sin); }),
      there_and_back(in, dy, [&](const auto& v) {
        const Tensor pairs = at::view_as_complex(v[0].to(at::kFloat).reshape({4, 1024, 16, 32, 2}));
        return at::view_as_real(pairs * turn).flatten(3).to(dtype);
      }));
}

void losses(at::ScalarType dtype, const char* name) {
  const Tensor logits = values({512, 32000}, dtype),
               labels = at::randint(0, 32000, {512}, at::kLong);
  const auto ours = [&] {
    Tensor work = logits.clone();
    const Tensor max = kernels::row_max(work);
    const auto parts = kernels::sum_exp_and_target(work, max, labels, 0);
    (parts.sum_exp.log() - parts.target).sum();
    kernels::softmax_gradient_(work, max, parts.sum_exp, labels, 0, 1.0 / 512);
  };
  const auto theirs = [&] {
    const Tensor work = logits.clone().requires_grad_();
    const Tensor loss = at::cross_entropy_loss(work.to(at::kFloat), labels);
    kernels::run_backward({loss}, {at::ones_like(loss)});
  };
  compare(name, 0.5, ours, theirs);
}

/// Clip, AdamW and the bf16 copy beside PyTorch's fused kernel, a multiplication and a copy.
void optimizers() {
  const std::int64_t count = 8 << 20;
  const auto fresh = [&] {
    return std::vector<Tensor>{values({count}, at::kFloat), at::randn({count}), at::zeros({count}),
                               at::zeros({count})};
  };
  auto a = fresh(), b = fresh();
  const Tensor copy_a = at::empty({count}, at::kBFloat16),
               copy_b = at::empty({count}, at::kBFloat16);
  std::vector<optim::ParamState> states{{.fqn = "p",
                                         .param = a[0],
                                         .grad = a[1],
                                         .exp_avg = a[2],
                                         .exp_avg_sq = a[3],
                                         .weight_decay = 0.1,
                                         .compute_copy = copy_a}};
  optim::AdamW adamw{optim::AdamWOptions{}};
  const Tensor step = at::ones({});
  compare(
      "clip+adamw+cast f32", 0.8, [&] { adamw.step(states, 1e-3, 1, 0.5); },
      [&] {
        b[1].mul_(0.999);
        at::_fused_adamw_({b[0]}, {b[1]}, {b[2]}, {b[3]}, {}, {step}, 1e-3, 0.9, 0.95, 0.1, 1e-8,
                          false, false);
        copy_b.copy_(b[0]);
      });
}

void sums() {
  const Tensor x = values({8 << 20}, at::kFloat);
  compare(
      "sum of squares f32", 1.0, [&] { kernels::sum_of_squares(x); },
      [&] { at::linalg_vector_norm(x); });
  compare(
      "exact sum of squares f32", 5.0, [&] { kernels::ExactSum().add_squares(x); },
      [&] { at::linalg_vector_norm(x); });
}

}  // namespace

int main() {
  std::printf("%-28s %9s %9s %6s %6s %9s %6s\n", "name", "ours", "theirs", "ratio", "target",
              "kokkos", "n/k");
  norms(at::kFloat, "rms_norm f32");
  norms(at::kBFloat16, "rms_norm bf16");
  gates(at::kFloat, "swiglu f32");
  gates(at::kBFloat16, "swiglu bf16");
  ropes(at::kFloat, "rope f32");
  ropes(at::kBFloat16, "rope bf16");
  losses(at::kFloat, "cross-entropy f32");
  losses(at::kBFloat16, "cross-entropy bf16");
  optimizers();
  sums();
}
