// SPDX-License-Identifier: Apache-2.0
// Ranks that launch their communicators in different orders.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <thread>

#include "ranks.hpp"

namespace tessera::sim::nccl::test {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;

/// Two communicators of the same two ranks, each with a stream.
struct Two {
  Rank& me;
  ncclComm_t other;
  cudaStream_t stream;
  float *x, *y;
  void on_first() { ncclAllReduce(x, x, 10, ncclFloat, ncclSum, me.comm, me.stream); }
  void on_other() { ncclAllReduce(y, y, 10, ncclFloat, ncclSum, other, stream); }
  void transfer_on_first() { transfer(x, me.comm, me.stream); }
  void transfer_on_other() { transfer(y, other, stream); }
  void transfer(float* data, ncclComm_t comm, cudaStream_t on) {
    if (me.rank == 0)
      ncclSend(data, 10, ncclFloat, 1, comm, on);
    else
      ncclRecv(data, 10, ncclFloat, 0, comm, on);
  }
};

void with_two(const std::function<void(Two&)>& body) {
  on_ranks(2, [&](Rank& me) {
    Array<float> x(10, 1.0f), y(10, 1.0f);
    cudaStream_t stream = nullptr;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    Two two{me, split(me.comm, 0, me.rank, "other"), stream, x.data(), y.data()};
    body(two);
    meet();
    ncclGroupStart();
    ncclCommAbort(two.other);
    ncclCommAbort(me.comm);
    EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
    me.comm = nullptr;
    me.finish();
    cudaStreamSynchronize(stream);
    cudaStreamDestroy(stream);
  });
}

/// One of the two fails on each rank: the first on which the ranks meet.
void expect_disorder(Two& two) {
  ncclResult_t first = ncclSuccess, other = ncclSuccess;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (first == ncclSuccess && other == ncclSuccess &&
         std::chrono::steady_clock::now() < deadline) {
    ncclCommGetAsyncError(two.me.comm, &first);
    ncclCommGetAsyncError(two.other, &other);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(std::max(first, other), ncclInvalidUsage);
  EXPECT_THAT(last_error(),
              AllOf(HasSubstr("launch in different orders at "),
                    AnyOf(HasSubstr("(the one before: ncclAllReduce "),
                          HasSubstr("(the one before: ncclSend 1 of communicator "),
                          HasSubstr("(the one before: ncclRecv 1 of communicator "))));
}

void expect_order(Two& two) {
  two.me.finish();
  EXPECT_EQ(cudaStreamSynchronize(two.stream), cudaSuccess);
}

TEST(SimOrder, SameEverywhere) {
  with_two([](Two& two) {
    for (int k = 0; k < 5; ++k) {
      two.on_first();
      two.on_other();
      two.transfer_on_other();
      two.on_first();
    }
    expect_order(two);
  });
}

TEST(SimOrder, OfCollectives) {
  with_two([](Two& two) {
    if (two.me.rank == 0) two.on_first();
    two.on_other();
    if (two.me.rank == 1) two.on_first();
    expect_disorder(two);
  });
}

TEST(SimOrder, OfATransferAndACollective) {
  with_two([](Two& two) {
    if (two.me.rank == 0) two.on_first();
    two.transfer_on_other();
    if (two.me.rank == 1) two.on_first();
    expect_disorder(two);
  });
}

TEST(SimOrder, OfTransfers) {
  with_two([](Two& two) {
    if (two.me.rank == 0) two.transfer_on_first();
    two.transfer_on_other();
    if (two.me.rank == 1) two.transfer_on_first();
    expect_disorder(two);
  });
}

TEST(SimOrder, WithinAGroupThereIsNone) {
  with_two([](Two& two) {
    two.on_first();
    ncclGroupStart();
    if (two.me.rank == 0) two.on_first();
    two.on_other();
    if (two.me.rank == 1) two.on_first();
    EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
    two.on_other();
    expect_order(two);
  });
}

/// One rank groups what the other launches one by one, in either order.
TEST(SimOrder, GroupsAgainstSingleOperations) {
  with_two([](Two& two) {
    if (two.me.rank == 0) ncclGroupStart();
    two.on_other();
    two.on_first();
    if (two.me.rank == 0) ncclGroupEnd();
    expect_order(two);
  });
}

/// Rank 0 drops an operation that rank 1 never launches. Nothing is known about their order then,
/// until they join anew.
TEST(SimOrder, IsForgottenWithAnAbort) {
  with_two([](Two& two) {
    if (two.me.rank == 0) {
      two.on_other();
      EXPECT_EQ(ncclCommAbort(two.other), ncclSuccess);
      two.other = nullptr;
    }
    meet();
    two.on_first();
    two.me.finish();
    ncclCommAbort(two.other);
    two.other = split(two.me.comm, 0, two.me.rank, "other");
    two.on_first();
    two.on_other();
    expect_order(two);
    if (two.me.rank == 0) two.on_first();
    two.on_other();
    if (two.me.rank == 1) two.on_first();
    expect_disorder(two);
  });
}

/// Ranks that share no other communicator may launch theirs as they like: here rank 1 has both, the
/// others one each.
TEST(SimOrder, CountsOnlyWhatBothTakePartIn) {
  on_ranks(3, [](Rank& me) {
    ncclComm_t left = split(me.comm, me.rank < 2 ? 0 : NCCL_SPLIT_NOCOLOR, 0, "left");
    ncclComm_t right = split(me.comm, me.rank > 0 ? 0 : NCCL_SPLIT_NOCOLOR, 0, "right");
    Array<float> x(10, 1.0f);
    const auto reduce = [&](ncclComm_t comm) {
      EXPECT_EQ(ncclAllReduce(x.data(), x.data(), 10, ncclFloat, ncclMax, comm, me.stream),
                ncclSuccess);
    };
    for (int k = 0; k < 3; ++k)
      if (right) reduce(right);
    for (int k = 0; k < 2; ++k)
      if (left) reduce(left);
    reduce(me.comm);
    me.finish();
    EXPECT_EQ(x.values()[0], 1.0f);
    EXPECT_EQ(ncclCommDestroy(left), ncclSuccess);  // of null it is nothing
    EXPECT_EQ(ncclCommDestroy(right), ncclSuccess);
  });
}

}  // namespace
}  // namespace tessera::sim::nccl::test
