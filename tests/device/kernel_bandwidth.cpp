// SPDX-License-Identifier: Apache-2.0
// Bytes a second of each kernel on the device beside those of a copy: `kernel_bandwidth [MIB]`, the
// size of an operand. Prints `@ NAME: GB/s` and `@ NAME, share:` of the copy's; TESSERA_TEST_DEVICE
// says where, as in tests.
#include "tessera/kernels/tensor.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "tessera/kernels/adamw.hpp"
#include "tessera/kernels/choices.hpp"
#include "tessera/kernels/cross_entropy.hpp"
#include "tessera/kernels/embedding.hpp"
#include "tessera/kernels/joined.hpp"
#include "tessera/kernels/operation.hpp"
#include "tessera/kernels/rms_norm.hpp"
#include "tessera/kernels/rope.hpp"
#include "tessera/kernels/scaled_bytes.hpp"
#include "tessera/kernels/square_sums.hpp"
#include "tessera/kernels/swiglu.hpp"
#include "tessera/train/device.hpp"
#include "test_device.hpp"

namespace {

using namespace tessera;
using at::Tensor;
using Work = std::function<void()>;

struct Bench {
  at::Device device;
  std::int64_t elements;  ///< of a float32 operand
  int runs;
  double run_seconds;
  double copy = 0;  ///< bytes a second

  Tensor values(at::IntArrayRef shape, at::ScalarType type) const {
    return at::randn(shape, at::TensorOptions(at::kFloat).device(at::kCPU)).to(type).to(device);
  }

  /// Of `calls` calls, one behind the other on the device.
  double seconds(const Work& work, int calls) const {
    train::synchronize(device);
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) work();
    train::synchronize(device);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

  /// Of `work`, which moves `bytes` bytes: the best of some runs, each long enough that neither the
  /// first launch nor the wait at its end counts.
  double rate(double bytes, const Work& work) const {
    seconds(work, 1);  // which loads it
    const double once = seconds(work, 4) / 4;
    const int calls = std::clamp(static_cast<int>(run_seconds / once), 1, 1000);
    double best = once;
    for (int run = 0; run < runs; ++run) best = std::min(best, seconds(work, calls) / calls);
    return bytes / best;
  }

  void row(const std::string& name, double bytes, const Work& work) {
    const double found = rate(bytes, work);
    if (name == "copy") copy = found;
    std::printf("@ %s: %.1f GB/s\n@ %s, share: %.3f of the copy\n", name.c_str(), found / 1e9,
                name.c_str(), found / copy);
    std::fflush(stdout);
  }
};

/// Forward and backward of a function of leaves.
Work both(const std::vector<Tensor>& leaves, const Tensor& dy,
          const std::function<Tensor()>& function) {
  return [=] {
    kernels::run_backward({function()}, {dy});
    for (Tensor leaf : leaves) leaf.mutable_grad().reset();
  };
}

void plain(Bench& bench) {
  const Tensor a = bench.values({bench.elements}, at::kFloat), b = at::empty_like(a);
  const auto bytes = static_cast<double>(a.nbytes());
  bench.row("copy", 2 * bytes, [=] { Tensor(b).copy_(a); });
  bench.row("sum of squares f32", bytes, [=] { kernels::block_squares(a); });
  bench.row("exact sum of squares f32", bytes, [=] { kernels::exact_squares(a); });
}

/// Gradients in bfloat16 become float32 sums, or part of them.
void gradient_sums(Bench& bench) {
  const Tensor gradient =
      bench.values({std::max<std::int64_t>(1, bench.elements / 4)}, at::kBFloat16);
  const Tensor sum = bench.values({1, 4 * gradient.numel()}, at::kFloat);
  const std::vector<Tensor> gradients(4, gradient);
  const auto bytes = static_cast<double>(sum.nbytes());
  bench.row("gradients bf16 to f32", 1.5 * bytes, [=] { kernels::copy_runs(sum, gradients); });
  bench.row("gradient sums bf16", 2.5 * bytes, [=] { kernels::add_runs(sum, gradients); });
}

void optimizer(Bench& bench) {
  std::vector<Tensor> state;
  for (int i = 0; i < 4; ++i) state.push_back(bench.values({bench.elements}, at::kFloat).abs_());
  const Tensor copy = at::empty_like(state[0], at::kBFloat16);
  const kernels::AdamWScalars scalars{.lr = 1e-3,
                                      .beta1 = 0.9,
                                      .beta2 = 0.95,
                                      .eps = 1e-8,
                                      .weight_decay = 0.1,
                                      .bias_correction1 = 0.5,
                                      .bias_correction2 = 0.5,
                                      .gradient_scale = 0.5};
  bench.row("adamw f32 with bf16 copy", 7.5 * static_cast<double>(state[0].nbytes()),
            [=] { kernels::adamw_sweep(state[0], state[1], state[2], state[3], scalars, copy); });
  std::vector<Tensor> narrow;
  for (const Tensor& wide : state) narrow.push_back(wide.to(at::kBFloat16));
  const std::int64_t rows = bench.elements / 64;  // of a matrix whose columns are cut in two
  const kernels::StochasticRounding rounding{7, {rows, 128}, {{0, 64}, {rows, 64}}};
  bench.row("adamw bf16 rounded at random", 16 * static_cast<double>(rows * 64), [=] {
    const auto part = [&](const Tensor& all) { return all.narrow(0, 0, rows * 64); };
    kernels::adamw_sweep(part(narrow[0]), part(state[1]), part(narrow[2]), part(narrow[3]), scalars,
                         {}, &rounding);
  });
}

/// Rows of 4096 as a Llama 8B has them, and of 128 as the norms of queries and keys.
void norms(Bench& bench) {
  for (const std::int64_t width : {4096, 128}) {
    const std::int64_t rows = std::max<std::int64_t>(1, 2 * bench.elements / width);
    const Tensor x = bench.values({rows, width}, at::kBFloat16).requires_grad_();
    const Tensor weight = bench.values({width}, at::kBFloat16).requires_grad_();
    const Tensor dy = bench.values({rows, width}, at::kBFloat16);
    const std::string name = "rms_norm bf16 rows of " + std::to_string(width);
    const auto bytes = static_cast<double>(x.nbytes());
    bench.row(name + " forward", 2 * bytes,
              [=] { kernels::rms_norm(x.detach(), weight.detach(), 1e-5); });
    bench.row(name + " both", 5 * bytes,
              both({x, weight}, dy, [=] { return kernels::rms_norm(x, weight, 1e-5); }));
  }
}

void activations(Bench& bench) {
  const std::int64_t rows = std::max<std::int64_t>(1, 2 * bench.elements / 14336);
  const Tensor gate = bench.values({rows, 14336}, at::kBFloat16).requires_grad_();
  const Tensor up = bench.values({rows, 14336}, at::kBFloat16).requires_grad_();
  const Tensor dy = bench.values({rows, 14336}, at::kBFloat16);
  const auto bytes = static_cast<double>(gate.nbytes());
  bench.row("swiglu bf16 forward", 3 * bytes, [=] { kernels::swiglu(gate.detach(), up.detach()); });
  bench.row("swiglu bf16 both", 8 * bytes,
            both({gate, up}, dy, [=] { return kernels::swiglu(gate, up); }));
  const auto clamped = [=] { return kernels::clamped_gate(gate, up, 1.702, 7); };
  bench.row("clamped gate bf16 both", 8 * bytes, both({gate, up}, dy, clamped));
}

/// 8 experts for each token, in an order that is as good as random.
void choices(Bench& bench) {
  const std::int64_t tokens = std::max<std::int64_t>(1, 2 * bench.elements / (8 * 2048));
  const Tensor rows = bench.values({tokens * 8, 2048}, at::kBFloat16).requires_grad_();
  const Tensor weights = bench.values({tokens, 8}, at::kFloat).requires_grad_();
  const Tensor dy = bench.values({tokens, 2048}, at::kBFloat16);
  const Tensor places = at::randn({tokens * 8}).argsort().view({tokens, 8}).to(bench.device);
  const auto bytes = static_cast<double>(rows.nbytes());
  bench.row("sum of 8 choices bf16 forward", 1.125 * bytes,
            [=] { kernels::sum_of_choices(rows.detach(), places, weights.detach()); });
  bench.row("sum of 8 choices bf16 both", 3.25 * bytes, both({rows, weights}, dy, [=] {
              return kernels::sum_of_choices(rows, places, weights);
            }));
}

/// 512 and 8192 tokens of a text, of which few are frequent, and a vocabulary of 131,072. The
/// gradient of the whole table is zero at first, and tokens are sorted for its sums.
void embeddings(Bench& bench) {
  const std::int64_t most =
      std::max<std::int64_t>(16, std::min<std::int64_t>(bench.elements / 2048, 8192));
  const Tensor table = bench.values({16 * most, 4096}, at::kBFloat16).requires_grad_();
  for (const std::int64_t tokens : {most / 16, most}) {
    const Tensor dy = bench.values({tokens, 4096}, at::kBFloat16);
    const Tensor text = at::randn({tokens}, at::TensorOptions(at::kDouble)).square().mul(tokens);
    const Tensor ids = text.to(at::kLong).clamp_max(table.size(0) - 1);
    const auto rows = static_cast<double>(at::bincount(ids).gt(0).sum().item<std::int64_t>());
    const Tensor there = ids.to(bench.device);
    const auto bytes = static_cast<double>(dy.nbytes()),
               used = rows * 2 * static_cast<double>(table.size(1));
    const std::string name = "embedding bf16 of " + std::to_string(tokens) + " tokens";
    if (tokens == most)  // the others take less than a launch
      bench.row(name + " forward", used + bytes,
                [=] { kernels::embedding(table.detach(), there); });
    bench.row(name + " both", 2 * (used + bytes) + static_cast<double>(table.nbytes()),
              both({table}, dy, [=] { return kernels::embedding(table, there); }));
  }
}

void rotations(Bench& bench) {
  const std::int64_t positions = std::max<std::int64_t>(1, 2 * bench.elements / (32 * 128));
  const auto tables = kernels::rope_tables(positions, 128, 5e5, {}, at::kFloat);
  const Tensor cos = tables.cos.to(bench.device), sin = tables.sin.to(bench.device);
  const Tensor x = bench.values({1, positions, 32, 128}, at::kBFloat16).requires_grad_();
  const Tensor dy = bench.values({1, positions, 32, 128}, at::kBFloat16);
  const auto bytes = static_cast<double>(x.nbytes());
  bench.row("rope bf16 forward", 2 * bytes, [=] { kernels::rope(x.detach(), cos, sin); });
  bench.row("rope bf16 both", 4 * bytes, both({x}, dy, [=] { return kernels::rope(x, cos, sin); }));
}

void losses(Bench& bench) {
  const std::int64_t vocab = 128256, rows = std::max<std::int64_t>(1, 2 * bench.elements / vocab);
  const Tensor logits = bench.values({rows, vocab}, at::kBFloat16);
  const Tensor labels =
      at::randint(0, vocab, {rows}, at::TensorOptions(at::kLong)).to(bench.device);
  bench.row("cross-entropy bf16", 4 * static_cast<double>(logits.nbytes()), [=] {
    const Tensor max = kernels::row_max(logits);
    const auto parts = kernels::sum_exp_and_target(logits, max, labels, 0);
    Tensor gradient = logits;
    kernels::softmax_gradient_(gradient, max, parts.sum_exp, labels, 0, 1.0);
  });
}

/// A matrix of bfloat16 becomes one of float8 with a scale for each row, or column, or both: the
/// latter two read it twice.
void roundings(Bench& bench) {
  using kernels::ByteOrder, kernels::ScaleBlock;
  for (const std::int64_t width : {4096, 1024}) {
    const std::int64_t rows = std::max<std::int64_t>(16, 2 * bench.elements / width / 16 * 16);
    const Tensor x = bench.values({rows, width}, at::kBFloat16);
    const auto bytes = static_cast<double>(x.nbytes());
    const std::string of = width == 4096 ? "" : " of " + std::to_string(width);
    bench.row("float8 by rows" + of, 1.5 * bytes, [=] {
      kernels::to_scaled_bytes(x, DType::f8e4m3, false, {1, ScaleBlock::whole}, ByteOrder::rows);
    });
    bench.row("float8 by columns" + of, 2.5 * bytes, [=] {
      kernels::to_scaled_bytes(x, DType::f8e4m3, false, {ScaleBlock::whole, 1}, ByteOrder::columns);
    });
    bench.row("float8 by both" + of, 3 * bytes,
              [=] { kernels::to_scaled_both_ways(x, DType::f8e4m3, false); });
  }
}

}  // namespace

int main(int argc, char** argv) {
  const double mebibytes = argc > 1 ? std::atof(argv[1]) : 256;
  if (!(mebibytes > 0)) {
    std::fprintf(stderr, "usage: kernel_bandwidth [MIB]      the size of a float32 operand\n");
    return 2;
  }
  const at::Device device = test::test_device();
  Bench bench{device.is_cuda() ? train::take_device(0) : device,
              static_cast<std::int64_t>(mebibytes * 262144), 5,
              test::wanted_device() == "sim" ? 0 : 0.05};
  for (const auto& part : {plain, gradient_sums, optimizer, norms, activations, choices, embeddings,
                           rotations, losses, roundings})
    part(bench);
  return 0;
}
