// SPDX-License-Identifier: Apache-2.0
#include "tessera/kernels/torch_internal.hpp"

#include "tessera/base/error.hpp"
#include "tessera/kernels/rms_norm.hpp"
#include "tessera/kernels/swiglu.hpp"
#include "twin.hpp"

namespace tessera::kernels::test {
namespace {

/// A unit with our kernels and LibTorch's, whose graph saves every weight.
at::Tensor unit(const at::Tensor& x, const at::Tensor& norm, const at::Tensor& w13,
                const at::Tensor& w2) {
  const auto halves = at::linear(rms_norm(x, norm, 1e-5), w13).chunk(2, -1);
  return at::linear(swiglu(halves[0], halves[1]), w2);
}

at::Tensor leaf(at::IntArrayRef shape) { return random(shape, at::kFloat).requires_grad_(); }

TEST(TorchInternal, ReleasedWeightsComeBackBitwise) {
  at::manual_seed(16);
  const at::Tensor x = leaf({6, 32}), w2 = leaf({32, 48});
  // One flat buffer of gathered weights, as a unit's unshard makes it; views share its storage.
  const at::Tensor flat = random({32 + 96 * 32}, at::kFloat);
  const at::Tensor norm = flat.narrow(0, 0, 32).requires_grad_();
  const at::Tensor w13 = flat.narrow(0, 32, 96 * 32).view({96, 32}).requires_grad_();
  const at::Tensor dy = random({6, 32}, at::kFloat), copy = flat.detach().clone();

  const auto plain = torch::autograd::grad({unit(x, norm, w13, w2)}, {x, norm, w13, w2}, {dy});
  const at::Tensor y = unit(x, norm, w13, w2);
  const std::size_t bytes = storage_bytes(flat);
  release_storage(flat);
  EXPECT_EQ(storage_bytes(w13), 0u);
  restore_storage(flat, bytes);
  flat.variable_data().copy_(copy);  // which autograd does not count as a change
  const auto again = torch::autograd::grad({y}, {x, norm, w13, w2}, {dy});
  for (std::size_t i = 0; i < plain.size(); ++i) EXPECT_TRUE(at::equal(plain[i], again[i])) << i;
}

TEST(TorchInternal, RestoreNeedsARelease) {
  const at::Tensor x = at::zeros({4}, options());
  EXPECT_THROW(restore_storage(x, 16), ContractViolation);
  release_storage(x);
  release_storage(x);
  restore_storage(x, 16);
  EXPECT_EQ(x.fill_(2).sum().item<float>(), 8.0F);
}

TEST(TorchInternal, WorksOnMemoryThatWasHandedIn) {
  std::vector<float> values(8, 1.0F);
  const at::Tensor x = at::from_blob(values.data(), {8});
  release_storage(x);
  restore_storage(x, 32);
  EXPECT_EQ(x.fill_(3).sum().item<float>(), 24.0F);
  EXPECT_EQ(values[0], 1.0F);
}

/// As LibTorch's product, with operands that are transposed or not.
TEST(TorchInternal, LinearInOneDnn) {
  if (!at::hasMKLDNN()) GTEST_SKIP() << "LibTorch has no oneDNN";
  at::manual_seed(17);
  const at::Tensor x = random({64, 48}, at::kFloat).cpu(),
                   weight = random({32, 48}, at::kFloat).cpu();
  const at::Tensor expected = at::linear(x, weight);
  for (const at::Tensor& rows : {x, x.t().contiguous().t()})
    for (const at::Tensor& matrix : {weight, weight.t().contiguous().t()})
      expect_close(linear_in_onednn(rows, matrix), expected, tolerance(at::kFloat));
}

}  // namespace
}  // namespace tessera::kernels::test
