// SPDX-License-Identifier: Apache-2.0
// LibTorch's autograd on the simulated GPU: bits of the host, and streams that the engine orders.
#include <ATen/ATen.h>
#include <c10/core/Event.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <vector>

#include "sim/sim.hpp"

namespace tessera::sim {
namespace {

using at::Tensor;

/// x -> x * x, with a hand-written backward pass.
struct Square : torch::autograd::Function<Square> {
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& x) {
    context->save_for_backward({x});
    return x * x;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    return {gradients[0] * context->get_saved_variables()[0] * 2};
  }
};

struct Network {
  std::vector<Tensor> weights, exp_avg, exp_avg_sq;

  explicit Network(at::Device device) {
    at::manual_seed(3);
    for (const auto& shape : std::vector<std::vector<std::int64_t>>{{32, 16}, {32}, {8, 32}, {8}}) {
      weights.push_back((at::randn(shape) * 0.2).to(device).requires_grad_());
      exp_avg.push_back(at::zeros_like(weights.back()));
      exp_avg_sq.push_back(at::zeros_like(weights.back()));
    }
  }

  Tensor loss(const Tensor& x, const Tensor& labels) const {
    const Tensor hidden = Square::apply(at::gelu(at::linear(x, weights[0], weights[1])));
    const Tensor logits = at::linear(hidden, weights[2], weights[3]);
    return at::cross_entropy_loss(logits, labels) +
           at::mse_loss(hidden, at::ones_like(hidden)) * 0.01;
  }

  void update() {
    const at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      Tensor& grad = weights[i].mutable_grad();
      exp_avg[i].lerp_(grad, 0.1);
      exp_avg_sq[i].mul_(0.99).addcmul_(grad, grad, 0.01);
      weights[i].addcdiv_(exp_avg[i], exp_avg_sq[i].sqrt().add_(1e-8), -1e-3);
      grad = Tensor();
    }
  }
};

/// Weights, losses and gradients of some steps, in host memory.
std::vector<Tensor> train(at::Device device, int steps) {
  Network network(device);
  std::vector<Tensor> kept;
  for (int step = 0; step < steps; ++step) {
    at::manual_seed(100 + step);
    const Tensor x = at::randn({20, 16}).to(device),
                 labels = at::randint(8, {20}, at::kLong).to(device);
    const Tensor loss = network.loss(x, labels);
    torch::autograd::backward({loss}, {});
    kept.push_back(loss.detach().cpu());
    for (const Tensor& weight : network.weights) kept.push_back(weight.grad().cpu());
    network.update();
  }
  for (const Tensor& weight : network.weights) kept.push_back(weight.detach().cpu());
  return kept;
}

TEST(Autograd, TrainsToTheHostsBits) {
  at::set_num_threads(1);
  const std::vector<Tensor> expected = train(at::kCPU, 20), got = train(at::kCUDA, 20);
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) ASSERT_TRUE(at::equal(got[i], expected[i])) << i;
  EXPECT_TRUE(races().empty());
}

/// A part of the forward pass on a stream of its own: the engine runs its backward there, and waits
/// for it.
TEST(Autograd, OrdersTheStreamsOfItsNodes) {
  at::manual_seed(1);
  const Tensor host = at::randn({64, 64});
  const Tensor x = host.cuda().requires_grad_();
  const auto side = c10::cuda::getStreamFromPool();
  Tensor y = x * 2, z;
  c10::Event ready(at::kCUDA), done(at::kCUDA);
  ready.record(c10::cuda::getCurrentCUDAStream());
  {
    const c10::cuda::CUDAStreamGuard guard(side);
    ready.block(side);
    z = y.exp();
    y.record_stream(side.unwrap());
    done.record(side);
  }
  done.block(c10::cuda::getCurrentCUDAStream());
  z.record_stream(c10::cuda::getCurrentCUDAStream().unwrap());
  torch::autograd::backward({(z * z).sum()}, {});
  const Tensor reference = host.clone().requires_grad_(), e = (reference * 2).exp();
  torch::autograd::backward({(e * e).sum()}, {});
  EXPECT_TRUE(at::equal(x.grad().cpu(), reference.grad()));
  EXPECT_TRUE(races().empty());
}

}  // namespace
}  // namespace tessera::sim
