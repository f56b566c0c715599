// SPDX-License-Identifier: Apache-2.0
// The loop of the host's kernels: every part once, and on more than one thread.
#include "host/parallel_for.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>
#include <vector>

#include "tessera/kernels/tensor.hpp"

namespace tessera::kernels {
namespace {

/// LibTorch's number of threads while it lives.
class Threads {
 public:
  explicit Threads(int count) : before_(at::get_num_threads()) { at::set_num_threads(count); }
  ~Threads() { at::set_num_threads(before_); }

 private:
  int before_;
};

TEST(ParallelFor, VisitsEachIndexOnce) {
  for (const int threads : {1, 2, 3})
    for (const std::int64_t count : {0, 1, 2, 7, 1000})
      for (const std::int64_t grain : {1, 3, 2000}) {
        const Threads these(threads);
        std::vector<std::atomic<int>> visits(static_cast<std::size_t>(count));
        parallel_for(0, count, grain, [&](std::int64_t first, std::int64_t last) {
          for (std::int64_t i = first; i < last; ++i) ++visits[static_cast<std::size_t>(i)];
        });
        for (const std::atomic<int>& visit : visits) EXPECT_EQ(visit, 1);
      }
}

/// A loop that is serial by mistake gives right results, so nothing else would notice.
TEST(ParallelFor, UsesTheThreadsOfLibTorch) {
  const Threads two(2);
  std::vector<std::thread::id> ids(2);
  parallel_for(0, 2, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i)
      ids[static_cast<std::size_t>(i)] = std::this_thread::get_id();
  });
  EXPECT_NE(ids[0], ids[1]);
}

TEST(ParallelFor, IsOnePartInsideAnotherLoop) {
  const Threads two(2);
  std::atomic<int> parts = 0;
  parallel_for(0, 2, 1, [&](std::int64_t, std::int64_t) {
    parallel_for(0, 100, 1, [&](std::int64_t first, std::int64_t last) {
      EXPECT_EQ(last - first, 100);
      ++parts;
    });
  });
  EXPECT_EQ(parts, 2);
}

}  // namespace
}  // namespace tessera::kernels
