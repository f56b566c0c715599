// SPDX-License-Identifier: Apache-2.0
// With TESSERA_SIM_KERNELS=host, src's own kernels on the device give the host's bits, in forward
// and backward.
#include "tessera/kernels/tensor.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "sim/sim.hpp"
#include "tessera/kernels/adamw.hpp"
#include "tessera/kernels/attention_part.hpp"
#include "tessera/kernels/cross_entropy.hpp"
#include "tessera/kernels/elementwise.hpp"
#include "tessera/kernels/exact_sum.hpp"
#include "tessera/kernels/joined.hpp"
#include "tessera/kernels/matrix_product.hpp"
#include "tessera/kernels/rms_norm.hpp"
#include "tessera/kernels/rope.hpp"
#include "tessera/kernels/swiglu.hpp"

namespace tessera::sim::test {
namespace {

using at::Tensor;
using Function = std::function<Tensor(const std::vector<Tensor>&)>;

std::vector<Tensor> results_on(at::Device device, const Function& function,
                               const std::vector<at::IntArrayRef>& shapes) {
  at::manual_seed(3);
  std::vector<Tensor> inputs;
  for (const at::IntArrayRef shape : shapes)
    inputs.push_back(at::randn(shape).to(device).set_requires_grad(true));
  const Tensor out = function(inputs);
  out.backward(at::randn(out.sizes()).to(device));
  std::vector<Tensor> results{out.detach().cpu()};
  for (const Tensor& input : inputs) results.push_back(input.grad().cpu());
  return results;
}

/// Output and gradients of `function` of random float32 inputs.
void expect_bits_of_host(const Function& function, const std::vector<at::IntArrayRef>& shapes) {
  at::set_num_threads(1);
  const auto expected = results_on(at::kCPU, function, shapes),
             got = results_on(at::kCUDA, function, shapes);
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_TRUE(got[i].equal(expected[i]))
        << i << ": " << (got[i] - expected[i]).abs().max().item<double>();
  EXPECT_TRUE(races().empty());
}

TEST(HostKernels, RmsNorm) {
  expect_bits_of_host([](const auto& in) { return kernels::rms_norm(in[0], in[1], 1e-5); },
                      {{3, 65, 64}, {64}});
}

TEST(HostKernels, Swiglu) {
  expect_bits_of_host([](const auto& in) { return kernels::swiglu(in[0], in[1]); },
                      {{5, 64, 192}, {5, 64, 192}});
}

TEST(HostKernels, Linear) {
  expect_bits_of_host([](const auto& in) { return kernels::linear(in[0], in[1]); },
                      {{2, 64, 64}, {192, 64}});
}

TEST(HostKernels, Rope) {
  const auto table = [](const Tensor& of) {
    return at::arange(64 * 8, at::kFloat).view({64, 8}).mul(0.01).to(of.device());
  };
  expect_bits_of_host(
      [&](const auto& in) { return kernels::rope(in[0], table(in[0]).cos(), table(in[0]).sin()); },
      {{2, 64, 4, 16}});
}

TEST(HostKernels, Copies) {
  const auto matrix = at::arange(12, at::kCUDA).to(at::kFloat).view({2, 6});
  const std::vector<Tensor> parts{at::empty({2, 2}, matrix.options()),
                                  at::empty({2, 4}, matrix.options())};
  kernels::copy_columns(matrix, parts);
  EXPECT_TRUE(at::equal(at::cat(parts, 1), matrix));
  const auto into = at::empty({2, 6}, matrix.options());
  kernels::copy_runs(into, std::vector<Tensor>{parts[0].t(), parts[1]});
  EXPECT_TRUE(at::equal(into, at::cat({parts[0].t(), parts[1]}, 1)));
  EXPECT_TRUE(races().empty());
}

TEST(HostKernels, Attention) {
  for (const std::int64_t kv_heads : {4, 2})
    expect_bits_of_host(
        [](const auto& in) {
          return kernels::attention(
              {.q = in[0], .k = in[1], .v = in[2], .scale = 0.25, .causal = true, .mask = {}});
        },
        {{2, 64, 4, 16}, {2, 64, kv_heads, 16}, {2, 64, kv_heads, 16}});
}

/// The model's attention is src's own on the host, and LibTorch's on a device.
TEST(HostKernels, AttentionOfModels) {
  for (const bool causal : {true, false})
    for (const std::int64_t kv_heads : {4, 2})
      expect_bits_of_host(
          [&](const auto& in) {
            const Tensor positions =
                at::arange(64, in[0].options().dtype(at::kLong).requires_grad(false));
            const auto mask =
                causal ? std::nullopt : std::optional(positions <= positions.unsqueeze(1));
            if (in[0].is_cpu())
              return kernels::attention(
                  {in[0], in[1], in[2], 0.25, causal, mask.value_or(Tensor())});
            return at::scaled_dot_product_attention(in[0].transpose(1, 2), in[1].transpose(1, 2),
                                                    in[2].transpose(1, 2), mask, 0.0, causal, 0.25,
                                                    kv_heads != 4)
                .transpose(1, 2);
          },
          {{2, 64, 4, 16}, {2, 64, kv_heads, 16}, {2, 64, kv_heads, 16}});
}

TEST(HostKernels, CrossEntropy) {
  const auto results = [](at::Device device) {
    at::manual_seed(3);
    Tensor logits = at::randn({40, 256}).to(device);
    const Tensor labels = at::randint(256, {40}).to(device), max = kernels::row_max(logits);
    const auto [sum, target] = kernels::sum_exp_and_target(logits, max, labels, 0);
    kernels::softmax_gradient_(logits, max, sum, labels, 0, 0.125);
    return std::vector<Tensor>{max.cpu(), sum.cpu(), target.cpu(), logits.cpu()};
  };
  const auto expected = results(at::kCPU), got = results(at::kCUDA);
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(got[i].equal(expected[i])) << i;
}

TEST(HostKernels, SumsOfSquares) {
  const Tensor values = at::randn({70000});
  EXPECT_EQ(kernels::sum_of_squares(values.to(at::kCUDA)), kernels::sum_of_squares(values));
  kernels::ExactSum host, device;
  host.add_squares(values);
  device.add_squares(values.to(at::kCUDA));
  EXPECT_EQ(device.value(), host.value());
}

}  // namespace
}  // namespace tessera::sim::test
