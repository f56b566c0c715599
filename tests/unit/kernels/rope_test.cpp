// SPDX-License-Identifier: Apache-2.0
#include "tessera/kernels/rope.hpp"

#include <cmath>

#include "tessera/base/error.hpp"
#include "twin.hpp"

namespace tessera::kernels::test {
namespace {

at::ScalarType table_type(at::ScalarType dtype) {
  return dtype == at::kDouble ? at::kDouble : at::kFloat;
}

/// rope() with the tables where x is.
at::Tensor turned(const at::Tensor& x, const RopeTables& tables) {
  return rope(x, tables.cos.to(x.device()), tables.sin.to(x.device()));
}

/// Complex multiplication, as the references write it.
at::Tensor rotated(const at::Tensor& x, const RopeTables& tables) {
  auto shape = x.sizes().vec();
  shape.back() /= 2;
  shape.push_back(2);
  const auto pairs = at::view_as_complex(x.contiguous().view(shape));
  const auto turn =
      at::complex(tables.cos.to(at::kDouble), tables.sin.to(at::kDouble)).unsqueeze(1);
  return at::view_as_real(pairs * turn).view(x.sizes());
}

TEST(Rope, EqualsItsTwin) {
  at::manual_seed(4);
  for (const auto dtype : dtypes)
    for (const std::int64_t head_dim : {2, 6, 16, 34, 128}) {
      const RopeTables tables = rope_tables(11, head_dim, 1e4, {}, table_type(dtype));
      expect_twins([&](const auto& in) { return turned(in[0], tables); },
                   [&](const auto& in) { return rotated(in[0], tables); },
                   {random({3, 11, 5, head_dim}, dtype)});
    }
}

TEST(Rope, ReadsPartOfAPackedProjection) {
  const RopeTables tables = rope_tables(5, 16, 1e4, RopeScaling{}, at::kFloat);
  const auto packed = random({2, 5, 8 * 16}, at::kFloat);
  const auto q = packed.narrow(-1, 3 * 16, 4 * 16).view({2, 5, 4, 16});
  EXPECT_TRUE(at::equal(turned(q, tables), turned(q.contiguous(), tables)));
  const auto t = q.transpose(1, 2).contiguous().transpose(1, 2);
  EXPECT_TRUE(at::equal(turned(t, tables), turned(q.contiguous(), tables)));
}

TEST(Rope, FrequenciesAreTorchTitans) {
  // rope_inv_freq_f32 of the reference case llama_a: head_dim 16, theta 500000, scaling 8, 1, 4,
  // 8192.
  const float want[] = {1.0F,
                        0.193922758102417F,
                        0.03760603070259094F,
                        0.00729266507551074F,
                        0.0005248460220173001F,
                        3.428102354519069e-05F,
                        6.647869668086059e-06F,
                        1.289173155782919e-06F};
  const auto got = rope_frequencies(16, 5e5, RopeScaling{}, at::kFloat);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(got[i].item<float>(), want[i]) << i;
}

TEST(Rope, TablesStartAnywhere) {
  const RopeTables whole = rope_tables(12, 8, 1e4, {}, at::kDouble),
                   part = rope_tables(5, 8, 1e4, {}, at::kDouble, 7);
  EXPECT_TRUE(at::equal(whole.cos.narrow(0, 7, 5), part.cos));
  EXPECT_TRUE(at::equal(whole.sin.narrow(0, 7, 5), part.sin));
  EXPECT_DOUBLE_EQ(whole.cos[3][1].item<double>(), std::cos(3 * std::pow(1e4, -0.25)));
}

TEST(Rope, RefusesWhatDoesNotFit) {
  const RopeTables tables = rope_tables(4, 8, 1e4, {}, at::kFloat);
  EXPECT_THROW(rope(at::ones({1, 5, 2, 8}), tables.cos, tables.sin), ContractViolation);
  EXPECT_THROW(rope(at::ones({1, 4, 2, 8}, at::kDouble), tables.cos, tables.sin),
               ContractViolation);
}

}  // namespace
}  // namespace tessera::kernels::test
