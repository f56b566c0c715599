// SPDX-License-Identifier: Apache-2.0
// Each operator on the simulated GPU gives the host's bits.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <vector>

#include "operator_cases.hpp"
#include "sim/sim.hpp"

namespace tessera::sim::test {
namespace {

using at::Tensor;

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const auto& part : {arithmetic(), reductions(), indexing(), products(), factories()})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

class Operators : public ::testing::TestWithParam<Case> {};

TEST_P(Operators, GiveTheHostsBits) {
  at::set_num_threads(1);
  const std::vector<Tensor> expected = GetParam().run(Inputs(at::kCPU)),
                            got = GetParam().run(Inputs(at::kCUDA));
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].scalar_type(), expected[i].scalar_type()) << i;
    ASSERT_EQ(got[i].sizes(), expected[i].sizes()) << i;
    EXPECT_TRUE(at::equal(got[i].cpu(), expected[i])) << i << "\n"
                                                      << got[i].cpu() << "\n"
                                                      << expected[i];
  }
  EXPECT_TRUE(races().empty());
}

INSTANTIATE_TEST_SUITE_P(All, Operators, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name; });

TEST(Operators, StayOnTheDevice) {
  const Tensor x = at::ones({3}, at::kCUDA);
  EXPECT_TRUE((x + 1).is_cuda());
  EXPECT_TRUE(x.nonzero().is_cuda());
  EXPECT_TRUE(is_device_pointer((x + 1).data_ptr()));
}

TEST(Operators, RefuseHostTensorsBesideDeviceOnes) {
  const Tensor x = at::ones({3}, at::kCUDA);
  EXPECT_THROW(x + at::ones({3}), c10::Error);
  EXPECT_THROW(at::ones({2, 3}, at::kCUDA).mm(at::ones({3, 2})), c10::Error);
}

TEST(Operators, ThrowWhatTheHostThrows) {
  EXPECT_THROW(at::ones({2, 3}, at::kCUDA).mm(at::ones({2, 3}, at::kCUDA)), c10::Error);
  EXPECT_THROW(at::ones({3}, at::kCUDA).add_(at::ones({4}, at::kCUDA)), c10::Error);
}

TEST(Operators, RefuseToAddNumbersInAnyOrder) {
  const at::Tensor rows = at::zeros({2}, at::TensorOptions(at::kCUDA).dtype(at::kLong));
  const auto add = [&](at::ScalarType type) {
    const auto options = at::TensorOptions(at::kCUDA).dtype(type);
    return at::zeros({3, 4}, options).index_add_(0, rows, at::ones({2, 4}, options));
  };
  EXPECT_THROW(add(at::kBFloat16), c10::Error);
  EXPECT_THROW(add(at::kDouble), c10::Error);
  EXPECT_EQ(add(at::kLong).sum().item<std::int64_t>(), 8);
}

TEST(Operators, RefuseGradientsOfEmbeddingsIn16Bits) {
  const auto options = at::TensorOptions(at::kCUDA).dtype(at::kBFloat16);
  const at::Tensor rows = at::zeros({2}, options.dtype(at::kLong));
  const auto of = [&](at::ScalarType type) {
    return at::embedding_dense_backward(at::ones({2, 4}, options.dtype(type)), rows, 3, -1, false);
  };
  EXPECT_THROW(of(at::kBFloat16), c10::Error);
  EXPECT_EQ(of(at::kFloat).sum().item<float>(), 8);
}

TEST(Operators, RefuseToAddNumbersToOneElementInAnyOrder) {
  const auto options = at::TensorOptions(at::kCUDA).dtype(at::kFloat);
  const auto add = [&](const std::vector<std::int64_t>& columns, at::ScalarType type) {
    const at::Tensor index = at::tensor(columns, options.dtype(at::kLong)).view({2, 2});
    return at::zeros({2, 3}, options.dtype(type))
        .scatter_add_(1, index, at::ones({2, 2}, options.dtype(type)));
  };
  EXPECT_EQ(add({0, 1, 1, 2}, at::kFloat).sum().item<float>(), 4);
  if (!settings().queued_operators) {  // what a task throws, the host does not catch
    EXPECT_THROW(add({0, 1, 2, 2}, at::kFloat), c10::Error);
  }
  EXPECT_EQ(add({0, 1, 2, 2}, at::kLong).sum().item<std::int64_t>(), 4);
}

TEST(Operators, ViewsShareMemory) {
  const Tensor x = at::ones({4, 2}, at::kCUDA);
  for (const Tensor& view :
       {at::view_as_complex(x), x.view({8}), x.t(), x.select(1, 0), x.unfold(0, 2, 1), x.detach()})
    EXPECT_TRUE(view.is_alias_of(x));
  EXPECT_TRUE(at::view_as_real(at::view_as_complex(x)).is_alias_of(x));
}

TEST(Operators, SeeThatTheirArgumentsOverlap) {
  if (settings().queued_operators) GTEST_SKIP() << "what a task throws, the host does not catch";
  const Tensor x = at::ones({4}, at::kCUDA);
  Tensor part = x.narrow(0, 1, 3);
  EXPECT_THROW(at::add_out(part, x.narrow(0, 0, 3), part), c10::Error);
}

TEST(Operators, ComputeOnOneThread) {
  if (settings().queued_operators) GTEST_SKIP() << "another thread computes";
  at::set_num_threads(2);
  const Tensor x = at::ones({1 << 16}, at::kCUDA);
  EXPECT_EQ(x.sum().item<float>(), 1 << 16);
  EXPECT_EQ(at::get_num_threads(), 1);
}

/// As on a GPU, where the storage's memory is gone.
TEST(Operators, RefuseTensorsWithoutMemory) {
  const Tensor x = at::ones({4}, at::kCUDA);
  x.storage().unsafeGetStorageImpl()->set_data_ptr_noswap(at::DataPtr(nullptr, x.device()));
  EXPECT_THROW(x + 1, c10::Error);
}

TEST(Operators, NewMemoryIsPoison) {
  EXPECT_TRUE(at::empty({64}, at::device(at::kCUDA).dtype(at::kFloat)).isnan().all().item<bool>());
  EXPECT_TRUE(at::empty({64}, at::device(at::kCUDA).dtype(at::kLong)).eq(-1).all().item<bool>());
}

TEST(FlashAttention, IsTheHostsWithHeadsShared) {
  at::set_num_threads(1);
  const Inputs in(at::kCPU);
  const Tensor q = in.real({2, 4, 10, 16}, at::kBFloat16),
               k = in.real({2, 2, 10, 16}, at::kBFloat16),
               v = in.real({2, 2, 10, 16}, at::kBFloat16),
               grad = in.real({2, 4, 10, 16}, at::kBFloat16);
  const auto wide = [](const Tensor& x) { return x.repeat_interleave(2, 1); };
  const auto [out, log] =
      at::_scaled_dot_product_flash_attention_for_cpu(q, wide(k), wide(v), 0.0, true);
  const auto flash =
      at::_scaled_dot_product_flash_attention(q.cuda(), k.cuda(), v.cuda(), 0.0, true, false);
  EXPECT_TRUE(at::equal(std::get<0>(flash).cpu(), out));
  EXPECT_TRUE(at::equal(std::get<1>(flash).cpu(), log));
  const auto [dq, dk, dv] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
      grad, q, wide(k), wide(v), out, log, 0.0, true);
  const auto [q_grad, k_grad, v_grad] = at::_scaled_dot_product_flash_attention_backward(
      grad.cuda(), q.cuda(), k.cuda(), v.cuda(), std::get<0>(flash), std::get<1>(flash), Tensor(),
      Tensor(), 10, 10, 0.0, true, std::get<6>(flash), std::get<7>(flash));
  EXPECT_TRUE(at::equal(q_grad.cpu(), dq));
  EXPECT_EQ(k_grad.sizes(), k.sizes());
  const Tensor sum = dk.unflatten(1, {2, 2}).to(at::kFloat).sum(2).to(at::kBFloat16);
  EXPECT_TRUE(at::equal(k_grad.cpu(), sum));
  EXPECT_TRUE(
      at::equal(v_grad.cpu(), dv.unflatten(1, {2, 2}).to(at::kFloat).sum(2).to(at::kBFloat16)));
  const auto cudnn = at::_scaled_dot_product_cudnn_attention(q.cuda(), k.cuda(), v.cuda(), {}, true,
                                                             0.0, true, false);
  EXPECT_TRUE(at::equal(std::get<0>(cudnn).cpu(), out));
  EXPECT_TRUE(at::equal(std::get<1>(cudnn).cpu(), log.unsqueeze(3)));
  const auto gradients = at::_scaled_dot_product_cudnn_attention_backward(
      at::empty_like(std::get<0>(cudnn)).copy_(grad), q.cuda(), k.cuda(), v.cuda(),
      std::get<0>(cudnn), std::get<1>(cudnn), std::get<6>(cudnn), std::get<7>(cudnn), Tensor(),
      Tensor(), Tensor(), 10, 10, 0.0, true);
  EXPECT_TRUE(at::equal(std::get<0>(gradients), q_grad));
  EXPECT_TRUE(at::equal(std::get<1>(gradients), k_grad));
  EXPECT_TRUE(at::equal(std::get<2>(gradients), v_grad));
}

}  // namespace
}  // namespace tessera::sim::test
