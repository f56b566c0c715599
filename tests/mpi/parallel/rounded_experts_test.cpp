// SPDX-License-Identifier: Apache-2.0
// Experts that two ranks share are rounded as those of one rank are.
#include "tessera/parallel/rounded_experts.hpp"

#include <gtest/gtest.h>

#include "mpi/comm/mpi_main.hpp"
#include "support/relative_distance.hpp"

namespace tessera::parallel {
namespace {

using at::Tensor;
using plan::LinearRecipe;
using test::relative_distance;
using test::world;

struct Product {
  Tensor y, dx, dw;
};

Product product_of(const Tensor& x, const Tensor& w, const Tensor& g, LinearCut cut,
                   LinearRecipe recipe, comm::Communicator& tp) {
  LinearRounding how{recipe, cut, &tp};
  how.emulated = true;
  WeightGradients gradients;
  const Tensor rows = x.contiguous().clone().requires_grad_(),
               weight = w.contiguous().clone().requires_grad_();
  const Tensor groups = at::full({w.size(0)}, x.size(0) / w.size(0), at::kLong);
  const Tensor y = rounded_expert_linear(rows, weight, groups, how, gradients);
  y.backward(g.contiguous());
  return {y.detach(), rows.grad(), weight.grad()};
}

/// Of numbers so different that other scales give other values.
class SharedExperts : public testing::TestWithParam<LinearRecipe> {
 protected:
  SharedExperts() {
    at::manual_seed(7);
    const auto spread = [](at::IntArrayRef shape) {
      return at::randn(shape, at::kDouble) * (3 * at::randn(shape, at::kDouble)).exp();
    };
    x_ = spread({80, 64});
    w_ = spread({2, 128, 64});
    g_ = spread({80, 128});
    whole_ = product_of(x_, w_, g_, LinearCut::nothing, GetParam(), *alone_);
  }
  /// This rank's half along a dimension.
  static Tensor half(const Tensor& of, std::int64_t dim) {
    const std::int64_t size = of.size(dim) / 2;
    return of.narrow(dim, world().rank() * size, size);
  }
  /// Partial sums of both ranks.
  Tensor summed(const Tensor& part) {
    const Tensor sum = part.contiguous();
    tp_->all_reduce({sum.data_ptr(), sum.numel(), DType::f64}).wait();
    return sum;
  }

  std::unique_ptr<comm::Communicator> tp_ = world().make(comm::Backend::mpi, "tp"),
                                      alone_ = comm::make_self_communicator("tp");
  Tensor x_, w_, g_;
  Product whole_;
};

TEST_P(SharedExperts, CutByOutputs) {
  const Product part =
      product_of(x_, half(w_, 1), half(g_, 1), LinearCut::outputs, GetParam(), *tp_);
  EXPECT_LE(relative_distance(part.y, half(whole_.y, 1)), 1e-14);
  EXPECT_LE(relative_distance(summed(part.dx), whole_.dx), 1e-14);
  EXPECT_LE(relative_distance(part.dw, half(whole_.dw, 1)), 1e-14);
}

TEST_P(SharedExperts, CutByInputs) {
  const Product part =
      product_of(half(x_, 1), half(w_, 2), g_, LinearCut::inputs, GetParam(), *tp_);
  EXPECT_LE(relative_distance(summed(part.y), whole_.y), 1e-14);
  EXPECT_LE(relative_distance(part.dx, half(whole_.dx, 1)), 1e-14);
  EXPECT_LE(relative_distance(part.dw, half(whole_.dw, 2)), 1e-14);
}

INSTANTIATE_TEST_SUITE_P(By, SharedExperts,
                         testing::Values(LinearRecipe::rowwise, LinearRecipe::mxfp8_rceil),
                         [](const auto& each) {
                           return each.param == LinearRecipe::rowwise ? "Float8" : "Mx";
                         });

}  // namespace
}  // namespace tessera::parallel
