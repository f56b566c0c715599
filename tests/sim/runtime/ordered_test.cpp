// Programs without a race: the checker says nothing, and forgets what it can.
#include <algorithm>
#include <random>

#include "runtime/history.hpp"
#include "sim_test.hpp"

namespace tessera::sim {
namespace {

constexpr std::size_t size = 4096;

class Ordered : public SimTest {
 protected:
  void TearDown() override {
    SimTest::TearDown();
    EXPECT_OK(cudaFree(data));
    EXPECT_OK(cudaEventDestroy(event));
  }
  void order(cudaStream_t first, cudaStream_t second) {
    EXPECT_OK(cudaEventRecord(event, first));
    EXPECT_OK(cudaStreamWaitEvent(second, event, 0));
  }
  std::byte* data = new_memory(size);
  cudaEvent_t event = new_event();
};

TEST_F(Ordered, ByAnEvent) {
  for (int i = 0; i < 100; ++i) {
    EXPECT_OK(touch(a, "write", {writes(data, size)}));
    order(a, b);
    EXPECT_OK(touch(b, "read", {reads(data, size)}));
    EXPECT_OK(touch(a, "also read", {reads(data, size)}));
    order(b, a);
  }
}

TEST_F(Ordered, ThroughAThirdStream) {
  EXPECT_OK(touch(a, "write", {writes(data, size)}));
  order(a, nullptr);
  order(nullptr, b);
  EXPECT_OK(touch(b, "write", {writes(data, size)}));
}

TEST_F(Ordered, ByWaitsOfTheHost) {
  EXPECT_OK(touch(a, "write", {writes(data, size)}));
  EXPECT_OK(cudaStreamSynchronize(a));
  EXPECT_OK(touch(b, "write", {writes(data, size)}));
  EXPECT_OK(cudaEventRecord(event, b));
  EXPECT_OK(cudaEventSynchronize(event));
  EXPECT_OK(touch(a, "write", {writes(data, size)}));
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT_OK(touch(b, "write", {writes(data, size)}));
}

TEST_F(Ordered, ByACopyThatHoldsTheHost) {
  std::vector<std::byte> host(size);
  EXPECT_OK(touch(a, "write", {writes(data, size)}));
  EXPECT_OK(cudaMemcpyAsync(host.data(), data, size, cudaMemcpyDeviceToHost, a));
  EXPECT_OK(touch(b, "write", {writes(data, size)}));
}

TEST_F(Ordered, AreTasksOnOtherBytes) {
  EXPECT_OK(touch(a, "write", {writes(data, 100)}));
  EXPECT_OK(touch(b, "write", {writes(data + 100, 100)}));
  EXPECT_OK(touch(nullptr, "write", {writes(data + 200, 0), writes(data, 0)}));
}

TEST_F(Ordered, FreeAfterAQuery) {
  EXPECT_OK(block_allocated(data, size, a));
  order(a, b);
  EXPECT_OK(touch(b, "send", {reads(data, size)}));
  EXPECT_OK(cudaEventRecord(event, b));
  while (cudaEventQuery(event) == cudaErrorNotReady) std::this_thread::yield();
  EXPECT_OK(block_freed(data, size, a));
  EXPECT_OK(block_allocated(data, size, a));
}

TEST_F(Ordered, MemoryThatWasFreedAndIsNew) {
  EXPECT_OK(touch(a, "write", {writes(data, size)}));
  EXPECT_OK(cudaFree(data));
  data = new_memory(size);
  EXPECT_OK(touch(b, "write", {writes(data, size)}));
}

TEST_F(Ordered, AfterStreamsThatAreGone) {
  for (int i = 0; i < 1000; ++i) {
    const cudaStream_t c = new_stream();
    EXPECT_OK(touch(c, "write", {writes(data, size)}));
    EXPECT_OK(cudaStreamSynchronize(c));
    EXPECT_OK(cudaStreamDestroy(c));
  }
}

/// Four streams take turns on parts of the memory, with waits as chance has it, against a plain model: each byte has a
/// set of earlier accesses and each stream a set of what it knows.
TEST(History, AgreesWithAModelOfSingleBytes) {
  using cudart::Bytes, cudart::Clock, cudart::History, cudart::Mark, cudart::Moment, cudart::Origin;
  constexpr std::size_t bytes = 24, streams = 4;
  struct Seen {
    Moment when;
    bool writes;
  };
  const auto origin = std::make_shared<const Origin>();
  std::mt19937 random(7);
  int conflicts = 0;
  for (int round = 0; round < 300; ++round) {
    History history;
    std::vector<std::vector<Seen>> model(bytes);
    std::vector<Clock> known(streams);
    for (int step = 0; step < 60; ++step) {
      const auto stream = static_cast<std::uint32_t>(random() % streams);
      if (random() % 2 == 0) {
        known[stream].merge(known[random() % streams]);
        continue;
      }
      const std::size_t begin = random() % bytes, end = begin + 1 + random() % (bytes - begin);
      const bool writes = random() % 2 == 0;
      const Mark mark{{stream, known[stream].advance(stream)}, origin};
      bool expected = false;
      for (std::size_t byte = begin; byte < end; ++byte)
        expected |= std::any_of(model[byte].begin(), model[byte].end(), [&](const Seen& seen) {
          return (writes || seen.writes) && !known[stream].knows(seen.when);
        });
      const auto found =
          writes ? history.write({begin, end}, mark, known[stream]) : history.read({begin, end}, mark, known[stream]);
      ASSERT_EQ(expected, found.has_value()) << "round " << round << " step " << step;
      if (found) {
        ++conflicts;
        break;
      }
      for (std::size_t byte = begin; byte < end; ++byte) model[byte].push_back({mark.when, writes});
    }
  }
  EXPECT_GT(conflicts, 100);
}

}  // namespace
}  // namespace tessera::sim
