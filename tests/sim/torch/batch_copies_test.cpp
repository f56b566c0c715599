// SPDX-License-Identifier: Apache-2.0
// Batches that travel on a stream of their own (src/train/batch_sender.cpp).
#include <ATen/ATen.h>
#include <c10/cuda/CUDAFunctions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <numeric>

#include "sim/sim.hpp"
#include "tessera/train/batch_sender.hpp"

namespace tessera::sim {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t length = 1 << 10;

/// Sample n has the number n everywhere.
class Numbers final : public data::SampleSource {
 public:
  std::int64_t seq_len() const override { return length; }
  std::optional<std::int64_t> sample_limit() const override { return std::nullopt; }
  void read(std::int64_t sample, std::span<std::int32_t> inputs,
            std::span<std::int32_t> labels) const override {
    require(sample != 7, ExitCode::data, "sample 7 cannot be read");
    std::ranges::fill(inputs, static_cast<std::int32_t>(sample));
    std::ranges::fill(labels, static_cast<std::int32_t>(sample));
  }
};

class BatchCopies : public testing::TestWithParam<bool> {
 protected:
  BatchCopies() {
    plan_.global_batch = plan_.rows = plan_.microbatch_rows = 1;
    plan_.cut = plan::SequenceCut::make(length, 1, true);
    plan_.pinned = GetParam();
  }
  void TearDown() override {
    forget_races();
    c10::cuda::device_synchronize();
  }
  /// As a step does, whose sums are those of `sent`; `next` is sent when it has its work.
  at::Tensor step(const train::SentBatch& sent) {
    const train::Batch batch = train::batch_of(sent, plan_);
    return batch.microbatches[0].tokens.sum() + batch.microbatches[0].labels.sum();
  }

  plan::BatchPlan plan_;
  Numbers source_;
  train::BatchSender sender_{source_, {}, 1000, {1, 1}, at::Device(at::kCUDA, 0)};
};

/// The compute stream stands still until the copy has been waited for.
TEST_P(BatchCopies, DoNotWaitForTheStepBefore) {
  const at::Tensor before = step(sender_.take(plan_, 0, 100));
  std::promise<void> arrived;
  std::atomic<bool> in_time = false;
  ASSERT_EQ(enqueue(nullptr, "a long step", {},
                    [&] {
                      in_time = arrived.get_future().wait_for(std::chrono::seconds(60)) ==
                                std::future_status::ready;
                      return cudaSuccess;
                    }),
            cudaSuccess);
  sender_.send_next(plan_, 1, 100);
  const train::SentBatch sent = sender_.take(plan_, 1, 100);
  sent.arrived.wait();
  arrived.set_value();
  EXPECT_EQ(step(sent).item<std::int64_t>(), 2 * length);
  EXPECT_TRUE(in_time);
}

TEST_P(BatchCopies, AreThereWhenTheStepReadsThem) {
  std::vector<at::Tensor> sums;
  for (std::int64_t n = 0; n < 6; ++n) {
    sums.push_back(step(sender_.take(plan_, n, 100)));
    sender_.send_next(plan_, n + 1, 100);
  }
  for (std::int64_t n = 0; n < 6; ++n)
    EXPECT_EQ(sums[static_cast<std::size_t>(n)].item<std::int64_t>(), 2 * n * length);
  EXPECT_TRUE(races().empty()) << races().front();
}

TEST_P(BatchCopies, MustBeHeldForTheStep) {
  const train::SentBatch sent = sender_.take(plan_, 3, 100);
  EXPECT_ANY_THROW((*sent.ids).sum());
  ASSERT_FALSE(races().empty());
  EXPECT_THAT(races().front(), HasSubstr("memcpy on stream"));
}

/// What was sent for another step is forgotten; what cannot be read is told when its step comes.
TEST_P(BatchCopies, FollowJumpsAndKeepMistakesForTheirStep) {
  for (const std::int64_t n : {4, 5, 2, 6}) {
    EXPECT_EQ(step(sender_.take(plan_, n, 100)).item<std::int64_t>(), 2 * n * length);
    sender_.send_next(plan_, n + 1, 100);
  }
  EXPECT_THROW(sender_.take(plan_, 7, 100), Error);
  sender_.send_next(plan_, 8, 8);
  EXPECT_EQ(step(sender_.take(plan_, 8, 100)).item<std::int64_t>(), 2 * 8 * length);
}

INSTANTIATE_TEST_SUITE_P(From, BatchCopies, testing::Bool(),
                         [](const auto& each) { return each.param ? "pinned" : "pageable"; });

}  // namespace
}  // namespace tessera::sim
