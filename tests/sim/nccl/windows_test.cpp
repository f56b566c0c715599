// SPDX-License-Identifier: Apache-2.0
// Memory that communicators know: windows, and NCCL's rules about them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "ranks.hpp"
#include "sim/sim.hpp"

namespace tessera::sim::nccl::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// Memory of ncclMemAlloc() that is a window of a rank's communicator.
class Window {
 public:
  Window(const Rank& rank, std::size_t count) : rank_(rank) {
    void* data = nullptr;
    EXPECT_EQ(ncclMemAlloc(&data, count * sizeof(float)), ncclSuccess);
    data_ = static_cast<float*>(data);
    EXPECT_EQ(ncclCommWindowRegister(rank_.comm, data_, count * sizeof(float), &window_,
                                     NCCL_WIN_COLL_SYMMETRIC),
              ncclSuccess)
        << last_error();
    std::vector<float> values(count, static_cast<float>(rank.rank));
    cudaMemcpy(data_, values.data(), count * sizeof(float), cudaMemcpyHostToDevice);
    cudaStreamSynchronize(nullptr);
  }
  /// After the rank's last operation.
  void end() {
    rank_.finish();
    EXPECT_EQ(ncclCommWindowDeregister(rank_.comm, window_), ncclSuccess) << last_error();
    meet();  // freeing memory waits for all ranks of the process
    EXPECT_EQ(ncclMemFree(data_), ncclSuccess) << last_error();
    meet();
  }
  float* data() const { return data_; }
  ncclWindow_t window() const { return window_; }

 private:
  const Rank& rank_;
  float* data_ = nullptr;
  ncclWindow_t window_ = nullptr;
};

float value_at(const float* data) {
  float value = -1;
  cudaMemcpy(&value, data, sizeof(value), cudaMemcpyDeviceToHost);
  return value;
}

TEST(SimWindows, GatherInPlace) {
  on_ranks(3, [](Rank& me) {
    Window all(me, 30);
    EXPECT_EQ(
        ncclAllGather(all.data() + 10 * me.rank, all.data(), 10, ncclFloat, me.comm, me.stream),
        ncclSuccess);
    me.finish();
    for (int r = 0; r < 3; ++r) EXPECT_EQ(value_at(all.data() + 10 * r), r);
    meet();
    all.end();
  });
  EXPECT_THAT(work_by_name(), HasSubstr("collective ncclAllGather.window 3\n"));
}

TEST(SimWindows, MembersGiveEqualSizes) {
  on_ranks(2, [](Rank& me) {
    void* data = nullptr;
    EXPECT_EQ(ncclMemAlloc(&data, 8192), ncclSuccess);
    ncclWindow_t window = nullptr;
    const std::size_t bytes = me.rank == 0 ? 4096 : 8192;
    EXPECT_EQ(ncclCommWindowRegister(me.comm, data, bytes, &window, NCCL_WIN_COLL_SYMMETRIC),
              ncclInvalidUsage);
    EXPECT_EQ(window, nullptr);
    EXPECT_THAT(last_error(),
                AllOf(HasSubstr("makes a window of"), HasSubstr("4096"), HasSubstr("8192")));
    meet();
  });
}

TEST(SimWindows, BuffersAtUnlikePlaces) {
  on_ranks(2, [](Rank& me) {
    Window window(me, 30);
    float* data = window.data() + (me.rank == 0 ? 0 : 1);
    EXPECT_EQ(ncclAllReduce(data, data, 10, ncclFloat, ncclSum, me.comm, me.stream), ncclSuccess);
    EXPECT_EQ(failure_of(me.comm), ncclInvalidUsage);
    EXPECT_THAT(last_error(), HasSubstr("give buffers at different places of their windows"));
    meet();
    EXPECT_EQ(ncclCommAbort(me.comm), ncclSuccess);  // ends the window
    me.comm = nullptr;
    me.finish();
    meet();
    EXPECT_EQ(ncclMemFree(window.data()), ncclSuccess) << last_error();
  });
}

TEST(SimWindows, OrderOfEnds) {
  on_ranks(1, [](Rank& me) {
    Window window(me, 30);
    EXPECT_EQ(ncclMemFree(window.data()), ncclInvalidUsage);
    EXPECT_THAT(last_error(), HasSubstr("is memory of a window of rank 0 of 1 of communicator"));
    window.end();
    EXPECT_EQ(ncclCommWindowDeregister(me.comm, window.window()), ncclInvalidArgument);
    EXPECT_EQ(ncclMemFree(window.data()), ncclInvalidArgument);
  });
  on_ranks(1, [](Rank& me) {
    Window window(me, 30);
    EXPECT_EQ(ncclCommFinalize(me.comm), ncclInvalidUsage);
    EXPECT_THAT(last_error(), HasSubstr("is ended before its windows, of which there are 1"));
  });
}

TEST(SimWindows, OtherMemory) {
  on_ranks(1, [](Rank& me) {
    Array<float> other(30, 1.0f);
    ncclWindow_t window = nullptr;
    EXPECT_EQ(ncclCommWindowRegister(me.comm, other.data(), 120, &window, NCCL_WIN_DEFAULT),
              ncclInvalidArgument);
    EXPECT_THAT(last_error(), HasSubstr("are no memory of ncclMemAlloc"));
    EXPECT_EQ(ncclCommWindowRegister(me.comm, other.data() + 1, 4, &window, NCCL_WIN_DEFAULT),
              ncclInvalidArgument);
    EXPECT_THAT(last_error(), HasSubstr("a window begins at a multiple of 4096 bytes"));
  });
}

}  // namespace
}  // namespace tessera::sim::nccl::test
