// SPDX-License-Identifier: Apache-2.0
#include "tessera/kernels/rope.hpp"

#include <array>
#include <cmath>

#include "tessera/base/error.hpp"
#include "tessera/kernels/joined.hpp"
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

/// Products of `heads` query and `key_heads` key and value heads: columns of one matrix, or apart.
std::vector<at::Tensor> products_of(const at::Tensor& matrix, std::int64_t query_width,
                                    bool together) {
  const std::int64_t rest = (matrix.size(1) - query_width) / 2;
  std::vector<at::Tensor> products = columns_of(matrix, std::array{query_width, rest, rest});
  for (at::Tensor& product : products)
    if (!together) product = product.clone(at::MemoryFormat::Contiguous);
  return products;
}

/// With the gradients of the products for those of the heads that `gradients` has.
struct Turned {
  Heads heads;
  std::vector<at::Tensor> gradients;
};

Turned turned_heads(std::vector<at::Tensor> products, const RopeTables& tables,
                    std::int64_t head_dim, const std::vector<at::Tensor>& gradients) {
  for (at::Tensor& product : products) product.requires_grad_();
  const std::vector<at::Tensor> leaves = products;  // shown here, so never overwritten
  const Heads heads = rope_heads(std::move(products), 3, head_dim, tables.cos.to(test_device()),
                                 tables.sin.to(test_device()));
  return {heads,
          torch::autograd::grad({heads.queries, heads.keys, heads.values}, leaves, gradients)};
}

TEST(RopeHeads, EqualRopeOfEachTogetherAndApart) {
  at::manual_seed(5);
  for (const auto dtype : dtypes)
    for (const std::int64_t hd : {2, 6, 16, 34}) {
      const RopeTables tables = rope_tables(7, hd, 1e4, {}, table_type(dtype));
      const at::Tensor matrix = random({3 * 7, 9 * hd}, dtype);
      const std::vector<at::Tensor> dy{
          random({3, 5, 7, hd}, dtype).transpose(1, 2),  // not in the order of heads
          random({3, 7, 2, hd}, dtype), random({3, 7, 2, hd}, dtype)};
      for (const bool together : {true, false}) {
        const auto [heads, gradients] =
            turned_heads(products_of(matrix, 5 * hd, together), tables, hd, dy);
        auto products = products_of(matrix, 5 * hd, together);
        for (at::Tensor& product : products) product.requires_grad_();
        const auto split = [&](const at::Tensor& x) { return x.view({3, 7, -1, hd}); };
        const at::Tensor q = turned(split(products[0]), tables),
                         k = turned(split(products[1]), tables), v = split(products[2]);
        EXPECT_TRUE(at::equal(heads.queries, q));
        EXPECT_TRUE(at::equal(heads.keys, k));
        EXPECT_TRUE(at::equal(heads.values, v));
        const auto wanted = torch::autograd::grad({q, k, v}, products, dy);
        for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(at::equal(gradients[i], wanted[i])) << i;
        EXPECT_EQ(are_neighbours(gradients), together);
      }
    }
}

/// A product that autograd or the caller still reads keeps its values; another one is overwritten.
TEST(RopeHeads, OverwriteOnlyWhatNobodyElseSees) {
  const RopeTables tables = rope_tables(7, 8, 1e4, {}, at::kFloat);
  const at::Tensor matrix = random({3 * 7, 6 * 8}, at::kFloat), before = matrix.clone();
  const auto cos = tables.cos.to(test_device()), sin = tables.sin.to(test_device());
  Heads heads = rope_heads(products_of(matrix, 2 * 8, true), 3, 8, cos, sin);
  EXPECT_TRUE(at::equal(matrix, before)) << "the matrix is shown here";
  EXPECT_FALSE(heads.queries.is_alias_of(matrix));
  std::vector<at::Tensor> products = products_of(matrix.clone(), 2 * 8, true);
  const void* const memory = products[1].const_data_ptr();
  const Heads in_place = rope_heads(std::move(products), 3, 8, cos, sin);
  EXPECT_EQ(in_place.keys.const_data_ptr(), memory);
  EXPECT_TRUE(at::equal(in_place.queries, heads.queries));
  EXPECT_TRUE(at::equal(in_place.keys, heads.keys));
  EXPECT_TRUE(at::equal(in_place.values, heads.values));
  products = products_of(matrix, 2 * 8, false);
  const at::Tensor seen = products[1];
  rope_heads(std::move(products), 3, 8, cos, sin);
  EXPECT_TRUE(at::equal(seen, before.narrow(1, 2 * 8, 2 * 8)));
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
  for (const std::int64_t head_dim : {0, 7})
    EXPECT_THROW(rope_heads({at::ones({4, 8}), at::ones({4, 8}), at::ones({4, 8})}, 1, head_dim,
                            tables.cos, tables.sin),
                 ContractViolation);
}

}  // namespace
}  // namespace tessera::kernels::test
