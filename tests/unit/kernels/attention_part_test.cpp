// SPDX-License-Identifier: Apache-2.0
// Flash attention's parts against products, products against plain softmax, and parts put together
// against the whole.
#include "tessera/kernels/attention_part.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "test_device.hpp"

namespace tessera::kernels {
namespace {

using at::Tensor;

double distance(const Tensor& a, const Tensor& b) {
  const Tensor x = a.to(at::kDouble), y = b.to(at::kDouble);
  return ((x - y).norm() / y.norm().clamp_min(1e-3)).item<double>();  // of one key: 0
}

struct Sizes {
  std::int64_t batch, queries, keys, heads, kv_heads, head_dim, value_dim;
};
constexpr Sizes kSizes[] = {{2, 7, 7, 4, 4, 8, 8},
                            {2, 7, 7, 6, 2, 8, 8},
                            {1, 5, 9, 4, 1, 16, 16},
                            {3, 33, 33, 4, 2, 4, 4},
                            {2, 6, 6, 4, 2, 8, 5}};

AttentionPart part_of(const Sizes& s, at::ScalarType type) {
  at::manual_seed(7);
  const auto options = at::TensorOptions(type).device(tessera::test::test_device());
  AttentionPart part;
  part.q = at::randn({s.batch, s.queries + 2, s.heads, s.head_dim}, options)
               .narrow(1, 1, s.queries);  // a tile
  part.k = at::randn({s.batch, s.keys, s.kv_heads, s.head_dim}, options);
  part.v = at::randn({s.batch, s.keys, s.kv_heads, s.value_dim}, options);
  part.scale = 0.3;
  return part;
}

Tensor band(std::int64_t queries, std::int64_t keys) {
  const Tensor back = at::arange(queries).unsqueeze(1) - at::arange(keys);
  return back.ge(0).logical_and_(back.lt(3)).to(tessera::test::test_device());
}

std::vector<AttentionPart> parts_of(const Sizes& shape, at::ScalarType type) {
  std::vector<AttentionPart> parts(3, part_of(shape, type));
  if (shape.queries != shape.keys) return {parts[0]};
  parts[1].causal = true;
  parts[2].mask = band(shape.queries, shape.keys);
  return parts;
}

/// Softmax as the books have it, differentiable.
AttentionValue by_the_book(const AttentionPart& part) {
  const std::int64_t group = part.q.size(2) / part.k.size(2);
  const Tensor q = part.q.transpose(1, 2), k = part.k.repeat_interleave(group, 2).transpose(1, 2),
               v = part.v.repeat_interleave(group, 2).transpose(1, 2);
  Tensor scores = at::matmul(q, k.transpose(-1, -2)) * part.scale;
  if (part.causal)
    scores = scores + at::full({q.size(2), q.size(2)}, -HUGE_VAL, q.options()).triu(1);
  if (part.mask.defined()) scores = scores.masked_fill(part.mask.logical_not(), -HUGE_VAL);
  return {at::matmul(at::softmax(scores, -1), v).transpose(1, 2),
          at::logsumexp(scores, -1).transpose(1, 2)};
}

void expect_by_the_book(const AttentionPart& part, bool flash, double tolerance) {
  AttentionPart leaf = part;
  leaf.q = part.q.detach().clone().requires_grad_(true);
  leaf.k = part.k.detach().clone().requires_grad_(true);
  leaf.v = part.v.detach().clone().requires_grad_(true);
  const AttentionValue expected = by_the_book(leaf);
  const AttentionValue value = flash ? attention_part(part) : attention_part_by_products(part);
  EXPECT_LE(distance(value.out, expected.out), tolerance);
  EXPECT_LE(distance(value.logsumexp, expected.logsumexp), tolerance);
  const Tensor grad = at::randn_like(value.out);
  expected.out.backward(grad);
  const AttentionGradients gradients = flash
                                           ? attention_part_backward(part, value, grad)
                                           : attention_part_by_products_backward(part, value, grad);
  EXPECT_LE(distance(gradients.q, leaf.q.grad()), tolerance);
  EXPECT_LE(distance(gradients.k, leaf.k.grad()), tolerance);
  EXPECT_LE(distance(gradients.v, leaf.v.grad()), tolerance);
}

TEST(AttentionPart, FlashAndProductsAgreeWithTheBook) {
  for (const Sizes& shape : kSizes)
    for (const bool flash : {false, true}) {
      SCOPED_TRACE(testing::Message() << (flash ? "flash, " : "products, ") << shape.heads
                                      << " heads, " << shape.kv_heads << " of keys");
      for (const AttentionPart& part : parts_of(shape, at::kDouble))
        expect_by_the_book(part, flash, 1e-12);
      for (const AttentionPart& part : parts_of(shape, at::kFloat))
        expect_by_the_book(part, flash, 1e-5);
    }
}

/// Sizes at the ends of blocks of 48 queries and 256 keys, and of vectors of any width.
TEST(AttentionPart, BlocksEndAnywhere) {
  constexpr Sizes sizes[] = {{1, 49, 49, 2, 1, 24, 24},   {1, 97, 257, 3, 1, 5, 40},
                             {1, 300, 300, 4, 2, 33, 17}, {2, 48, 512, 2, 2, 16, 16},
                             {1, 1, 2, 1, 1, 1, 1},       {1, 515, 515, 1, 1, 8, 8}};
  for (const Sizes& shape : sizes)
    for (const auto& [type, tolerance] : {std::pair(at::kDouble, 1e-12), {at::kFloat, 1e-5}})
      for (const AttentionPart& part : parts_of(shape, type)) {
        SCOPED_TRACE(testing::Message()
                     << type << ", " << shape.queries << " queries, " << shape.keys << " keys"
                     << (part.causal ? ", causal" : "") << (part.mask.defined() ? ", masked" : ""));
        expect_by_the_book(part, true, tolerance);
      }
}

/// A block of keys that some of its queries do not see, and one that none does.
TEST(AttentionPart, DocumentsBeginInLaterBlocks) {
  const Tensor position = at::arange(700),
               document = position.ge(270).to(at::kInt) + position.ge(540);
  for (const auto& [type, tolerance] : {std::pair(at::kDouble, 1e-12), {at::kFloat, 1e-5}}) {
    AttentionPart part = part_of({1, 700, 700, 2, 1, 8, 8}, type);
    part.mask = position.unsqueeze(1)
                    .ge(position)
                    .logical_and_(document.unsqueeze(1).eq(document))
                    .to(tessera::test::test_device());
    expect_by_the_book(part, true, tolerance);
  }
}

TEST(AttentionPart, NotANumberReachesItsRowsOnly) {
  AttentionPart part = part_of({1, 60, 60, 1, 1, 8, 8}, at::kFloat);
  part.causal = true;
  part.q[0][3][0][0] = NAN;
  const Tensor out = attention_part(part).out.cpu();
  EXPECT_TRUE(out[0][3].isnan().all().item<bool>());
  EXPECT_FALSE(out[0].narrow(0, 4, 56).isnan().any().item<bool>());
}

TEST(AttentionPart, HalfPrecisionKeepsItsLogarithmInFloat32) {
  for (const AttentionPart& part : parts_of(kSizes[3], at::kBFloat16)) {
    const AttentionValue flash = attention_part(part), products = attention_part_by_products(part);
    EXPECT_EQ(flash.logsumexp.scalar_type(), at::kFloat);
    EXPECT_EQ(products.out.scalar_type(), at::kBFloat16);
    EXPECT_LE(distance(flash.out, products.out), 1e-2);
    EXPECT_LE(distance(flash.logsumexp, products.logsumexp), 1e-3);
    const Tensor grad = at::randn_like(products.out);
    const auto a = attention_part_backward(part, products, grad),
               b = attention_part_by_products_backward(part, products, grad);
    EXPECT_LE(distance(a.q, b.q), 2e-2);
    EXPECT_LE(distance(a.k, b.k), 2e-2);
    EXPECT_LE(distance(a.v, b.v), 2e-2);
  }
}

/// Bands and segments, for devices that have them, against products with a mask.
class Bands : public testing::Test {
 protected:
  void SetUp() override {
    if (!attends_in_bands(part_of(kSizes[0], at::kBFloat16)))
      GTEST_SKIP() << "this device has no bands";
  }
};

/// Query i sees keys from i + keys - queries - left to i + keys - queries + right.
Tensor band_mask(std::int64_t queries, std::int64_t keys, const Band& band) {
  const Tensor ahead = at::arange(keys) - at::arange(queries).unsqueeze(1) - (keys - queries);
  Tensor mask = at::ones({queries, keys}, at::kBool);
  if (band.left >= 0) mask = mask.logical_and(ahead >= -band.left);
  if (band.right >= 0) mask = mask.logical_and(ahead <= band.right);
  return mask.to(tessera::test::test_device());
}

/// Of `a` to `b`, a gradient of queries or keys. It is a difference of two products that are alike
/// where few keys are seen, and equal where one is: float32 sums leave a part of one product,
/// `term`, there.
double distance_beside(const Tensor& a, const Tensor& b, const Tensor& term) {
  const Tensor x = a.to(at::kDouble).reshape_as(b), y = b.to(at::kDouble);
  const Tensor size = y.norm() + 1e-4 * term.to(at::kDouble).norm();
  return ((x - y).norm() / size.clamp_min(1e-30)).item<double>();
}

void expect_twins(const AttentionPart& part, const AttentionPart& twin) {
  const AttentionValue value = attention_part(part), expected = attention_part_by_products(twin);
  const auto shaped = [&](const Tensor& x) { return x.reshape_as(expected.out); };
  EXPECT_LE(distance(shaped(value.out), expected.out), 1e-2);
  EXPECT_LE(distance(value.logsumexp.reshape_as(expected.logsumexp), expected.logsumexp), 1e-3);
  const Tensor grad = at::randn_like(value.out);
  const auto a = attention_part_backward(part, value, grad),
             b = attention_part_by_products_backward(twin, expected, shaped(grad)),
             terms = attention_part_by_products_backward(
                 twin, {at::zeros_like(expected.out), expected.logsumexp}, shaped(grad));
  EXPECT_LE(distance_beside(a.q, b.q, terms.q), 2e-2);
  EXPECT_LE(distance_beside(a.k, b.k, terms.k), 2e-2);
  EXPECT_LE(distance(a.v.reshape_as(b.v), b.v), 2e-2);
}

/// Values narrower and wider than keys, and heads that no kernel has.
constexpr Sizes kBandSizes[] = {{2, 7, 7, 4, 4, 8, 8},   {1, 5, 9, 4, 1, 16, 16},
                                {2, 9, 9, 6, 2, 24, 16}, {1, 33, 33, 4, 2, 16, 40},
                                {2, 6, 6, 4, 2, 12, 5},  {1, 11, 17, 2, 2, 192, 128},
                                {3, 1, 1, 2, 1, 8, 8},   {2, 1, 4, 4, 2, 8, 8}};

TEST_F(Bands, AreTheirMasks) {
  for (const Sizes& shape : kBandSizes)
    for (const Band band : {Band{}, Band{-1, 0}, Band{0, 0}, Band{2, 0}, Band{1000, 0}, Band{3, 2},
                            Band{-1, 1}, Band{1, -1}}) {
      SCOPED_TRACE(testing::Message() << shape.queries << " queries, " << shape.keys << " keys of "
                                      << shape.head_dim << ", values of " << shape.value_dim << ", "
                                      << band.left << " to " << band.right);
      AttentionPart part = part_of(shape, at::kBFloat16), twin = part;
      part.band = band;
      twin.mask = band_mask(shape.queries, shape.keys, band);
      expect_twins(part, twin);
    }
}

/// The same values as parts of larger tensors whose rows begin anywhere.
TEST_F(Bands, TakeAnyLayout) {
  AttentionPart part = part_of({2, 9, 9, 4, 2, 8, 8}, at::kBFloat16);
  part.causal = true;
  for (Tensor* x : {&part.q, &part.k, &part.v}) {
    const Tensor room = at::zeros({x->size(0), x->size(1), x->size(2), 11}, x->options());
    room.narrow(3, 1, 8).copy_(*x);
    *x = room.narrow(3, 1, 8);
  }
  expect_twins(part, part);
}

/// Documents of one token too, in sequences of one and of several.
TEST_F(Bands, SegmentsSeeThemselvesOnly) {
  for (const Sizes& shape : {Sizes{2, 12, 12, 4, 2, 8, 8}, Sizes{3, 7, 7, 2, 1, 24, 16}})
    for (const std::int64_t window : {0, 1, 3, 100}) {
      SCOPED_TRACE(testing::Message() << shape.batch << " sequences, window " << window);
      AttentionPart part = part_of(shape, at::kBFloat16);
      part.causal = true;
      part.band = {window > 0 ? window - 1 : -1, 0};
      const std::int64_t all = shape.batch * shape.queries;
      const std::vector<std::int32_t> begins{0, 1, 5, static_cast<std::int32_t>(shape.queries),
                                             static_cast<std::int32_t>(all)};
      part.segments = {at::tensor(begins, at::kInt).to(tessera::test::test_device()),
                       all - shape.queries};
      AttentionPart twin = part;
      for (Tensor* x : {&twin.q, &twin.k, &twin.v}) *x = x->reshape({1, all, x->size(2), -1});
      twin.causal = false;
      Tensor document = at::zeros({all}, at::kInt);
      for (const std::int32_t begin : begins) document.narrow(0, begin, all - begin) += 1;
      twin.mask = band_mask(all, all, part.band)
                      .logical_and(document.unsqueeze(1).eq(document).to(twin.q.device()));
      expect_twins(part, twin);
    }
}

TEST(AttentionPart, GradientsOfPartsAddUp) {
  const AttentionPart whole = part_of({2, 7, 8, 4, 2, 8, 8}, at::kDouble);
  const AttentionValue value = attention_part_by_products(whole);
  const Tensor grad = at::randn_like(value.out);
  const AttentionGradients expected = attention_part_by_products_backward(whole, value, grad);
  Tensor grad_q = at::zeros_like(whole.q);
  for (const std::int64_t half : {0, 1}) {
    AttentionPart part = whole;
    part.k = whole.k.narrow(1, half * 4, 4);
    part.v = whole.v.narrow(1, half * 4, 4);
    const AttentionGradients gradients = attention_part_backward(part, value, grad);
    grad_q += gradients.q;
    EXPECT_LE(distance(gradients.k, expected.k.narrow(1, half * 4, 4)), 1e-12);
    EXPECT_LE(distance(gradients.v, expected.v.narrow(1, half * 4, 4)), 1e-12);
  }
  EXPECT_LE(distance(grad_q, expected.q), 1e-12);
}

TEST(AttentionPart, ProductsTakeRowsInChunks) {
  // 11.5 M scores: three chunks
  const AttentionPart part = parts_of({4, 600, 600, 8, 4, 4, 4}, at::kDouble)[1];
  const AttentionValue flash = attention_part(part), products = attention_part_by_products(part);
  EXPECT_LE(distance(products.out, flash.out), 1e-12);
  const Tensor grad = at::randn_like(products.out);
  const auto a = attention_part_backward(part, products, grad),
             b = attention_part_by_products_backward(part, products, grad);
  EXPECT_LE(distance(b.q, a.q), 1e-11);
  EXPECT_LE(distance(b.k, a.k), 1e-11);
}

}  // namespace
}  // namespace tessera::kernels
