// What each rank reads of a step.
#include "tessera/train/batch.hpp"

#include <gtest/gtest.h>

#include <numeric>

namespace tessera::train {
namespace {

/// Sample n is 100 n + position, but for a 7 that ends a document at position n; the last label is ignored.
class Counting final : public data::SampleSource {
 public:
  std::int64_t seq_len() const override { return 8; }
  std::optional<std::int64_t> sample_limit() const override { return std::nullopt; }
  void read(std::int64_t sample, std::span<std::int32_t> inputs, std::span<std::int32_t> labels) const override {
    std::iota(inputs.begin(), inputs.end(), static_cast<std::int32_t>(100 * sample));
    std::iota(labels.begin(), labels.end(), inputs[0] + 1);
    inputs[static_cast<std::size_t>(sample)] = 7;
    labels.back() = -100;
  }
  std::vector<std::int64_t> document_starts(std::int64_t sample) const override { return {0, sample + 2}; }
};

BatchPlan plan_of(int cp) {
  BatchPlan plan;
  plan.global_batch = 4;
  plan.rows = plan.microbatch_rows = 2;
  plan.cut = parallel::SequenceCut::make(8, cp, true);
  return plan;
}

Batch read(const BatchPlan& plan, const Reader& reader) {
  return read_batch(Counting(), plan, 0, reader, 1000, torch::kCPU);
}

TEST(Batch, RanksOfOneSequenceReadTheirPositions) {
  const Batch batch = read(plan_of(2), {1, 0});  // samples 2 and 3, chunks 0 and 3
  const auto& [tokens, labels, documents] = batch.microbatches.at(0);
  EXPECT_TRUE(torch::equal(tokens, torch::tensor({200, 201, 206, 207, 300, 301, 306, 307})));
  EXPECT_TRUE(torch::equal(labels, torch::tensor({201, 202, 207, -100, 301, 302, 307, -100})));
  EXPECT_TRUE(documents.empty());
  EXPECT_EQ(batch.valid_tokens, 14);  // of whole sequences: one of these ranks counts for all
  EXPECT_TRUE(
      torch::equal(read(plan_of(2), {0, 1}).microbatches[0].tokens, torch::tensor({2, 3, 4, 5, 102, 103, 104, 105})));
}

TEST(Batch, DocumentsAreThoseOfWholeSequences) {
  BatchPlan plan = plan_of(2);
  plan.documents = true;
  EXPECT_EQ(read(plan, {0, 1}).microbatches[0].documents, (parallel::Documents{{0, 2}, {0, 3}}));
  plan.document_end_id = 7;
  EXPECT_EQ(read(plan, {1, 0}).microbatches[0].documents, (parallel::Documents{{0, 3}, {0, 4}}));
}

}  // namespace
}  // namespace tessera::train
