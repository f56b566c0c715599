// SPDX-License-Identifier: Apache-2.0
// What each rank reads of a step.
#include "tessera/train/batch_sender.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>

#include "tessera/base/error.hpp"

namespace tessera::train {
namespace {

/// Sample n is 100 n + position, but for a 7 that ends a document at position n; the last label is
/// ignored.
class Counting final : public data::SampleSource {
 public:
  std::int64_t seq_len() const override { return 8; }
  std::optional<std::int64_t> sample_limit() const override { return std::nullopt; }
  void read(std::int64_t sample, std::span<std::int32_t> inputs,
            std::span<std::int32_t> labels) const override {
    std::iota(inputs.begin(), inputs.end(), static_cast<std::int32_t>(100 * sample));
    std::iota(labels.begin(), labels.end(), inputs[0] + 1);
    inputs[static_cast<std::size_t>(sample)] = 7;
    labels.back() = -100;
  }
  std::vector<std::int64_t> document_starts(std::int64_t sample) const override {
    return {0, sample + 2};
  }
};

plan::BatchPlan plan_of(int cp) {
  plan::BatchPlan plan;
  plan.global_batch = 4;
  plan.rows = plan.microbatch_rows = 2;
  plan.cut = plan::SequenceCut::make(8, cp, true);
  return plan;
}

Batch read(const plan::BatchPlan& plan, const Reader& reader) {
  const Counting source;
  return batch_of(BatchSender(source, reader, 1000, {}, at::kCPU).take(plan, 0, 4), plan);
}

TEST(Batch, RanksOfOneSequenceReadTheirPositions) {
  const Batch batch = read(plan_of(2), {1, 0});  // samples 2 and 3, chunks 0 and 3
  const auto& [tokens, labels, documents] = batch.microbatches.at(0);
  EXPECT_TRUE(at::equal(tokens, at::tensor({200, 201, 206, 207, 300, 301, 306, 307}, at::kLong)));
  EXPECT_TRUE(at::equal(labels, at::tensor({201, 202, 207, -100, 301, 302, 307, -100}, at::kLong)));
  EXPECT_TRUE(documents.empty());
  EXPECT_EQ(batch.valid_tokens, 6);
  EXPECT_TRUE(at::equal(read(plan_of(2), {0, 1}).microbatches[0].tokens,
                        at::tensor({2, 3, 4, 5, 102, 103, 104, 105}, at::kLong)));
}

TEST(Batch, StagesReadWhatTheyNeed) {
  const auto first = read(plan_of(1), {0, 0, true, false}),
             last = read(plan_of(1), {0, 0, false, true});
  const auto both = read(plan_of(1), {0, 0});
  EXPECT_TRUE(at::equal(first.microbatches[0].tokens, both.microbatches[0].tokens));
  EXPECT_FALSE(first.microbatches[0].labels.defined());
  EXPECT_EQ(first.valid_tokens, 0);
  EXPECT_TRUE(at::equal(last.microbatches[0].labels, both.microbatches[0].labels));
  EXPECT_FALSE(last.microbatches[0].tokens.defined());
  EXPECT_EQ(last.valid_tokens, both.valid_tokens);
}

/// Counts what is read, and fails from a sample on.
class Watched final : public data::SampleSource {
 public:
  std::int64_t seq_len() const override { return 8; }
  std::optional<std::int64_t> sample_limit() const override { return std::nullopt; }
  void read(std::int64_t sample, std::span<std::int32_t> inputs,
            std::span<std::int32_t> labels) const override {
    require(sample < 40, ExitCode::data, "there is no sample {}", sample);
    ++reads;
    Counting().read(sample % 8, inputs, labels);
    inputs[0] = static_cast<std::int32_t>(sample);
  }
  mutable std::atomic<int> reads = 0;
};

TEST(ReadAhead, GivesTheSameRowsAndReadsNoMore) {
  const plan::BatchPlan plan = plan_of(2);
  for (const int ahead : {0, 1, 3, 20}) {
    const Watched source, twin;
    ReadAhead reader(source, {1, 0}, 1000, {ahead, 2});
    for (std::int64_t first = 0; first < 32; first += 4) {
      const Rows rows = reader.take(plan, first, 32),
                 expected = read_rows(twin, plan, first, {1, 0}, 1000);
      EXPECT_EQ(rows.inputs, expected.inputs);
      EXPECT_EQ(rows.labels, expected.labels);
    }
    EXPECT_EQ(source.reads, twin.reads) << ahead;
  }
}

TEST(ReadAhead, ReadsBeforeItIsAsked) {
  const Watched source;
  ReadAhead reader(source, {0, 0}, 1000, {1, 1});
  reader.take(plan_of(1), 0, 1000);
  for (int i = 0; i < 2000 && source.reads < 4; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(source.reads, 4);  // two rows of this step and of the next
}

/// A jump leaves what was read ahead behind; a mistake is told when its step comes.
TEST(ReadAhead, FollowsJumpsAndKeepsMistakesForTheirStep) {
  const Watched source;
  ReadAhead reader(source, {0, 0}, 1000, {3, 2});
  for (const std::int64_t first : {0, 4, 20, 8, 12, 32, 36})
    EXPECT_EQ(reader.take(plan_of(1), first, 1000).inputs[0], first);
  EXPECT_THROW(reader.take(plan_of(1), 40, 1000), Error);
  EXPECT_EQ(reader.take(plan_of(1), 4, 1000).inputs[0], 4);
}

TEST(Batch, DocumentsAreThoseOfWholeSequences) {
  plan::BatchPlan plan = plan_of(2);
  plan.documents = true;
  EXPECT_EQ(read(plan, {0, 1}).microbatches[0].documents, (parallel::Documents{{0, 2}, {0, 3}}));
  plan.document_end_id = 7;
  EXPECT_EQ(read(plan, {1, 0}).microbatches[0].documents, (parallel::Documents{{0, 3}, {0, 4}}));
}

}  // namespace
}  // namespace tessera::train
