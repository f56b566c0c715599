// SPDX-License-Identifier: Apache-2.0
// The sampler: a bijection per epoch, windows that follow each other, the same for the same key.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "support/error_of.hpp"
#include "support/temporary_folder.hpp"
#include "tessera/data/keyed_permutation.hpp"
#include "tessera/data/window_source.hpp"

namespace tessera::data {
namespace {

using tessera::test::error_of;
using tessera::test::TemporaryFolder;
using testing::HasSubstr;
using Ids = std::vector<std::int32_t>;

Ids images(const KeyedPermutation& permutation) {
  Ids values;
  for (std::int64_t i = 0; i < permutation.size(); ++i)
    values.push_back(static_cast<std::int32_t>(permutation(i)));
  return values;
}

TEST(KeyedPermutation, IsABijectionOfEverySize) {
  for (std::int64_t size = 1; size <= 300; ++size) {
    const Ids values = images(KeyedPermutation(size, 7, static_cast<std::uint64_t>(size)));
    const std::set<std::int32_t> distinct(values.begin(), values.end());
    EXPECT_EQ(distinct.size(), static_cast<std::size_t>(size));
    EXPECT_LT(*distinct.rbegin(), size);
  }
}

TEST(KeyedPermutation, DependsOnSeedAndStream) {
  const Ids values = images(KeyedPermutation(1000, 1, 0));
  EXPECT_EQ(images(KeyedPermutation(1000, 1, 0)), values);
  EXPECT_NE(images(KeyedPermutation(1000, 2, 0)), values);
  EXPECT_NE(images(KeyedPermutation(1000, 1, 1)), values);
}

TEST(KeyedPermutation, StaysInRangeWhenLarge) {
  for (const std::int64_t size : {(std::int64_t{1} << 40) + 1, (std::int64_t{1} << 62) + 3}) {
    const KeyedPermutation permutation(size, 5);
    std::set<std::int64_t> seen;
    for (std::int64_t i = 0; i < 1000; ++i) seen.insert(permutation(size - 1 - i));
    EXPECT_EQ(seen.size(), 1000u);
    EXPECT_TRUE(*seen.begin() >= 0 && *seen.rbegin() < size);
  }
}

/// A thing and its neighbour go to places that know nothing of each other.
TEST(KeyedPermutation, LooksRandom) {
  constexpr int kSize = 10000;
  const Ids values = images(KeyedPermutation(kSize, 3));
  double product = 0, fixed = 0, ascents = 0;
  for (int i = 0; i + 1 < kSize; ++i) {
    product += (values[i] / (kSize - 1.0) - 0.5) * (values[i + 1] / (kSize - 1.0) - 0.5);
    fixed += values[i] == i;
    ascents += values[i] < values[i + 1];
  }
  EXPECT_LT(std::abs(12 * product / kSize), 0.05);
  EXPECT_LE(fixed, 8);
  EXPECT_NEAR(ascents / kSize, 0.5, 0.02);
}

class Windows : public testing::Test {
 protected:
  static constexpr std::int64_t kTokens = 1003;

  TokenFile make(std::int64_t tokens) {
    Ids ids(static_cast<std::size_t>(tokens));
    std::iota(ids.begin(), ids.end(), 0);
    TokenFileInfo info;
    info.vocab_size = 70000;
    TokenFileWriter writer(folder_ / "x", info);
    writer.append_document(ids);
    writer.finish();
    return TokenFile::open(folder_ / "x");
  }
  TemporaryFolder folder_;
};

TEST_F(Windows, EachEpochReadsEachOnce) {
  const WindowSource source(make(kTokens), 10, 42);
  ASSERT_EQ(source.window_count(), 100);
  EXPECT_EQ(source.sample_limit(), std::nullopt);
  std::vector<Ids> orders;
  for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
    Ids order, inputs(10), labels(10);
    for (std::int64_t n = 0; n < 100; ++n) {
      source.read(epoch * 100 + n, inputs, labels);
      order.push_back(inputs[0]);
      for (int t = 0; t < 10; ++t) EXPECT_EQ(inputs[t], inputs[0] + t);
      for (int t = 0; t < 10; ++t) EXPECT_EQ(labels[t], inputs[t] + 1);
    }
    EXPECT_EQ(std::set<std::int32_t>(order.begin(), order.end()).size(), 100u);
    orders.push_back(order);
  }
  EXPECT_NE(orders[0], orders[1]);
  EXPECT_NE(orders[1], orders[2]);
}

TEST_F(Windows, AreAFunctionOfTheirNumber) {
  const WindowSource one(make(kTokens), 16, 1), other(TokenFile::open(folder_ / "x"), 16, 1);
  const std::int64_t far = std::int64_t{1} << 50;
  Ids a(16), b(16), labels(16);
  for (const std::int64_t sample : {far, std::int64_t{0}, far + 5, std::int64_t{61}}) {
    one.read(sample, a, labels);
    other.read(sample, b, labels);
    EXPECT_EQ(a, b);
  }
}

/// Any piece of a sample is that piece of the whole one, from either side alone.
TEST_F(Windows, AreReadInParts) {
  const WindowSource source(make(kTokens), 10, 3);
  Ids inputs(10), labels(10), part(4);
  for (std::int64_t sample = 0; sample < 120; sample += 7) {
    source.read(sample, inputs, labels);
    source.read_part(sample, {3, 4}, part, {});
    EXPECT_EQ(part, Ids(inputs.begin() + 3, inputs.begin() + 7));
    source.read_part(sample, {6, 4}, {}, part);
    EXPECT_EQ(part, Ids(labels.begin() + 6, labels.end()));
    source.SampleSource::read_part(sample, {6, 4}, {}, part);
    EXPECT_EQ(part, Ids(labels.begin() + 6, labels.end()));
  }
}

TEST_F(Windows, KnowWhereTheirDocumentsBegin) {
  TokenFileInfo info;
  info.vocab_size = 100;
  TokenFileWriter writer(folder_ / "x", info);
  for (const std::int32_t length : {3, 1, 9, 20, 8})
    writer.append_document(Ids(static_cast<std::size_t>(length), length));
  writer.finish();  // documents begin at 0, 3, 4, 13, 33
  const WindowSource source(TokenFile::open(folder_ / "x"), 10, 0);
  const std::vector<std::vector<std::int64_t>> expected{{0, 3, 4}, {0, 3}, {0}, {0, 3}};
  for (std::int64_t sample = 0; sample < source.window_count(); ++sample)
    EXPECT_EQ(source.document_starts(sample),
              expected[static_cast<std::size_t>(source.origin(sample)->first_token / 10)]);
}

TEST_F(Windows, NeedOneSample) {
  EXPECT_EQ(WindowSource(make(11), 10, 0).window_count(), 1);
  const TokenFile file = make(10);
  EXPECT_THAT(error_of(ExitCode::data, [&] { WindowSource(file, 10, 0); }), HasSubstr("too few"));
  EXPECT_THAT(error_of(ExitCode::usage, [&] { WindowSource(file, 0, 0); }),
              HasSubstr("sequence length"));
}

}  // namespace
}  // namespace tessera::data
