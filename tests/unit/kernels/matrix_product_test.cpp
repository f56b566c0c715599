// SPDX-License-Identifier: Apache-2.0
// Products against plain float32 (float64) sums: bit by bit where those are exact, to one rounding
// elsewhere. On a processor with bfloat16 instructions the tests of CTest with TESSERA_CPU=avx2 run
// the widened products.
#include "tessera/kernels/matrix_product.hpp"

#include <cmath>

#include "tessera/kernels/attention_part.hpp"
#include "tessera/kernels/grouped_mm.hpp"
#include "tessera/kernels/instruction_set.hpp"
#include "tessera/kernels/operation.hpp"
#include "twin.hpp"

namespace tessera::kernels::test {
namespace {

using at::Tensor;

struct ProductSizes {
  std::int64_t m, k, n;
};
constexpr ProductSizes kProducts[] = {{1, 1, 1},   {3, 5, 7},      {17, 33, 9}, {65, 1, 127},
                                      {1, 300, 2}, {130, 257, 63}, {0, 4, 3}};

/// Small whole numbers, so that every sum of products is exact in float32.
Tensor whole_numbers(at::IntArrayRef shape) {
  return at::randint(-4, 5, shape, at::kFloat).to(options(at::kBFloat16));
}

Tensor reference(const Tensor& a, const Tensor& b) {
  return at::matmul(a.to(at::kDouble), b.to(at::kDouble));
}

/// Every layout that products are called with: plain, transposed, a part of wider rows, every
/// second column.
std::vector<Tensor> layouts(const Tensor& x) {
  Tensor wide = at::zeros({x.size(0), x.size(1) + 3}, x.options()),
         spread = at::zeros({x.size(0), 2 * x.size(1)}, x.options());
  wide.narrow(1, 2, x.size(1)).copy_(x);
  spread.slice(1, 0, 2 * x.size(1), 2).copy_(x);
  return {x, x.t().contiguous().t(), wide.narrow(1, 2, x.size(1)),
          spread.slice(1, 0, 2 * x.size(1), 2)};
}

/// Operands of a product whose sums are exact, and what it must give.
struct ExactProduct {
  ExactProduct(const ProductSizes& s, at::ScalarType type)
      : a(whole_numbers({s.m, s.k}).to(type)),
        b(whole_numbers({s.k, s.n}).to(type)),
        c(whole_numbers({s.m, s.n}).to(type)),
        sum(reference(a, b).to(type)),
        more((reference(a, b) + c.to(at::kDouble)).to(type)) {}

  Tensor a, b, c, sum, more;  ///< a b, and a b + c
};

void expect_bits(const ExactProduct& p) {
  for (const Tensor& left : layouts(p.a))
    for (const Tensor& right : layouts(p.b)) {
      EXPECT_TRUE(at::equal(kernels::mm(left, right), p.sum));
      Tensor into = p.c.clone();
      kernels::addmm_(into, left, right);
      EXPECT_TRUE(at::equal(into, p.more));
    }
}

TEST(MatrixProduct, HasTheBitsOfExactSums) {
  for (const ProductSizes& s : kProducts) {
    SCOPED_TRACE(testing::Message() << s.m << " x " << s.k << " x " << s.n);
    expect_bits({s, at::kBFloat16});
  }
}

/// The float32 sum may be off by a few roundings of float32, so a value may round to the other
/// neighbour: never further.
TEST(MatrixProduct, RoundsOnce) {
  for (const ProductSizes& s : kProducts) {
    const Tensor a = random({s.m, s.k}, at::kBFloat16), b = random({s.k, s.n}, at::kBFloat16);
    const Tensor want = reference(a, b), got = kernels::mm(a, b).to(at::kDouble);
    const Tensor terms = at::matmul(a.to(at::kDouble).abs(), b.to(at::kDouble).abs());
    const Tensor bound = want.abs() * std::ldexp(1.0, -8) +
                         terms * (static_cast<double>(s.k) * std::ldexp(1.0, -24));
    EXPECT_TRUE((got - want).abs().le(bound * 1.01).all().item<bool>())
        << s.m << " x " << s.k << " x " << s.n;
  }
}

/// Float32, with shapes that oneDNN computes where it is faster, and results that are parts of
/// wider rows.
TEST(MatrixProduct, Float32HasTheBitsOfExactSums) {
  for (const ProductSizes& s : {ProductSizes{129, 257, 131}, {3, 7001, 101}, {17, 33, 9}}) {
    SCOPED_TRACE(testing::Message() << s.m << " x " << s.k << " x " << s.n);
    const ExactProduct p(s, at::kFloat);
    expect_bits(p);
    for (const Tensor& into : layouts(p.c)) {
      kernels::addmm_(into, p.a, p.b);
      EXPECT_TRUE(at::equal(into, p.more));
      kernels::mm_out(into, p.a, p.b);
      EXPECT_TRUE(at::equal(into, p.sum));
    }
  }
}

/// Rows of a float32 linear layer with their gradients, where oneDNN computes it and where it does
/// not.
TEST(MatrixProduct, Float32LinearDifferentiates) {
  for (const std::int64_t rows : {3, 400}) {
    const Tensor x = whole_numbers({2, rows, 65}).to(at::kFloat),
                 weight = whole_numbers({127, 65}).to(at::kFloat);
    const Tensor x1 = x.clone().requires_grad_(), w1 = weight.clone().requires_grad_();
    const Tensor x2 = x.to(at::kDouble).requires_grad_(),
                 w2 = weight.to(at::kDouble).requires_grad_();
    const Tensor y = kernels::linear(x1, w1), want = at::linear(x2, w2),
                 dy = whole_numbers(y.sizes());
    EXPECT_TRUE(at::equal(y, want.to(at::kFloat)));
    run_backward({y, want}, {dy.to(at::kFloat), dy.to(at::kDouble)});
    EXPECT_TRUE(at::equal(x1.grad(), x2.grad().to(at::kFloat)));
    EXPECT_TRUE(at::equal(w1.grad(), w2.grad().to(at::kFloat)));
  }
}

/// More than one tile in both directions.
TEST(MatrixProduct, TilesFitTogether) {
  const Tensor a = whole_numbers({70, 40000}).sign(), b = whole_numbers({40000, 66}).sign();
  EXPECT_TRUE(at::equal(kernels::mm(a, b), reference(a, b).to(at::kBFloat16)));
}

/// Gradients too: of small whole numbers they are exact.
template <class Kernel, class Twin>
void expect_exact(const std::vector<Tensor>& inputs, const Kernel& kernel, const Twin& twin) {
  std::vector<Tensor> ours, theirs;
  for (const Tensor& input : inputs) {
    ours.push_back(input.clone().requires_grad_());
    theirs.push_back(input.to(at::kDouble).requires_grad_());
  }
  const Tensor y = kernel(ours), want = twin(theirs), dy = whole_numbers(y.sizes());
  EXPECT_TRUE(at::equal(y, want.to(at::kBFloat16)));
  run_backward({y}, {dy});
  run_backward({want}, {dy.to(at::kDouble)});
  for (std::size_t i = 0; i < inputs.size(); ++i)
    EXPECT_TRUE(at::equal(ours[i].grad(), theirs[i].grad().to(at::kBFloat16)));
}

TEST(MatrixProduct, LinearAndMatmulDifferentiate) {
  const auto linear = [](const auto& v) { return kernels::linear(v[0], v[1]); };
  expect_exact({whole_numbers({3, 5, 7}), whole_numbers({9, 7})}, linear,
               [](const auto& v) { return at::linear(v[0], v[1]); });
  const auto matmul = [](const auto& v) { return kernels::matmul(v[0], v[1]); };
  expect_exact({whole_numbers({2, 3, 5, 7}), whole_numbers({2, 3, 7, 4})}, matmul,
               [](const auto& v) { return at::matmul(v[0], v[1]); });
}

/// A width of 8 is that of one kernel for all groups on devices.
TEST(MatrixProduct, GroupsDifferentiate) {
  const Tensor on_host = at::tensor({4, 0, 3}, at::kLong),
               on_device = on_host.to(tessera::test::test_device()),
               ends = on_device.cumsum(0, at::kInt);
  for (const std::int64_t width : {5, 8})
    for (const Tensor& groups : {on_host, on_device, ends})
      expect_exact(
          {whole_numbers({7, width}), whole_numbers({3, 2 * width, width})},
          [&](const auto& v) { return kernels::grouped_mm(v[0], v[1], groups); },
          [](const auto& v) {
            return at::cat({at::linear(v[0].narrow(0, 0, 4), v[1][0]),
                            at::linear(v[0].narrow(0, 4, 3), v[1][2])});
          });
}

/// What the tests above would not notice: that products are not widened where they should be.
TEST(MatrixProduct, WidensExactlyWhereThereAreNoInstructions) {
  const Tensor half = at::zeros({2, 2}, at::kBFloat16);
  EXPECT_EQ(widens(half), !has_fast_bfloat16());
  EXPECT_FALSE(widens(half.to(at::kFloat)));
  EXPECT_FALSE(has_fast_bfloat16() && instruction_set() != InstructionSet::avx512);
}

TEST(MatrixProduct, RefusesShapesThatDoNotFit) {
  const Tensor a = at::zeros({2, 3}, at::kBFloat16), out = at::zeros({2, 2}, at::kBFloat16);
  EXPECT_ANY_THROW(kernels::mm_out(out, a, a));
}

/// Attention as one operation, beside its definition in float64.
TEST(MatrixProduct, AttentionDifferentiates) {
  for (const std::int64_t kv_heads : {4, 2}) {
    const std::vector<Tensor> inputs{random({2, 9, 4, 8}, at::kBFloat16),
                                     random({2, 9, kv_heads, 8}, at::kBFloat16),
                                     random({2, 9, kv_heads, 8}, at::kBFloat16)};
    expect_twins(
        [](const auto& v) {
          return attention({v[0], v[1], v[2], 0.3, true, {}});
        },
        [&](const auto& v) {
          const auto heads = [&](const Tensor& x) {
            return x.repeat_interleave(4 / x.size(2), 2).transpose(1, 2);
          };
          const Tensor scores = at::matmul(heads(v[0]), heads(v[1]).transpose(2, 3)) * 0.3;
          const Tensor hidden = at::ones({9, 9}, at::kBool).triu(1);
          return at::matmul(at::softmax(scores.masked_fill(hidden, -HUGE_VAL), -1), heads(v[2]))
              .transpose(1, 2);
        },
        inputs, 2);  // the gradient of probabilities and the product with it
  }
}

}  // namespace
}  // namespace tessera::kernels::test
