// SPDX-License-Identifier: Apache-2.0
// Each of NCCL's rules, broken: what the caller gets, and what it is told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "ranks.hpp"
#include "sim/sim.hpp"

namespace tessera::sim::nccl::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Call = std::function<ncclResult_t(Rank&, float* in, float* out)>;

/// Rank 0 makes one call and the others another one; all learn that the communicator is broken, and
/// why.
void expect_mismatch(const Call& first, const Call& others,
                     const testing::Matcher<std::string>& text) {
  on_ranks(3, [&](Rank& me) {
    Array<float> in(30, 1.0f), out(30, 1.0f);
    EXPECT_EQ((me.rank == 0 ? first : others)(me, in.data(), out.data()), ncclSuccess);
    EXPECT_EQ(failure_of(me.comm), ncclInvalidUsage);
    EXPECT_THAT(last_error(), text);
    EXPECT_EQ(cudaStreamQuery(me.stream), cudaErrorNotReady);  // as on a GPU: until it is aborted
    meet();
    EXPECT_EQ(ncclCommAbort(me.comm), ncclSuccess);
    me.comm = nullptr;
    me.finish();
  });
}

Call all_reduce(std::size_t count, ncclDataType_t type = ncclFloat, ncclRedOp_t op = ncclSum) {
  return [=](Rank& me, float* in, float* out) {
    return ncclAllReduce(in, out, count, type, op, me.comm, me.stream);
  };
}

TEST(SimRules, Counts) {
  expect_mismatch(
      all_reduce(10), all_reduce(11),
      HasSubstr(
          "the members of communicator test differ in their collective 1: rank 0: "
          "ncclAllReduce(sum, float32, 10 elements); rank 1 2: ncclAllReduce(sum, float32, 11"));
}

TEST(SimRules, Types) {
  expect_mismatch(all_reduce(10), all_reduce(10, ncclInt32),
                  HasSubstr("ncclAllReduce(sum, int32, 10 elements)"));
}

TEST(SimRules, Operations) {
  expect_mismatch(all_reduce(10), all_reduce(10, ncclFloat, ncclMax),
                  HasSubstr("ncclAllReduce(max, float32"));
}

TEST(SimRules, Calls) {
  const Call gather = [](Rank& me, float* in, float* out) {
    return ncclAllGather(in, out, 10, ncclFloat, me.comm, me.stream);
  };
  expect_mismatch(all_reduce(10), gather,
                  HasSubstr("rank 1 2: ncclAllGather(float32, 10 elements)"));
}

TEST(SimRules, Roots) {
  const auto broadcast = [](int root) {
    return [root](Rank& me, float* in, float*) {
      return ncclBroadcast(in, in, 10, ncclFloat, root, me.comm, me.stream);
    };
  };
  expect_mismatch(broadcast(0), broadcast(1), AllOf(HasSubstr("root 0"), HasSubstr("root 1")));
}

TEST(SimRules, CountsOfTransfers) {
  on_ranks(2, [](Rank& me) {
    Array<float> x(30, 1.0f);
    if (me.rank == 0)
      ncclSend(x.data(), 10, ncclFloat, 1, me.comm, me.stream);
    else
      ncclRecv(x.data(), 11, ncclFloat, 0, me.comm, me.stream);
    EXPECT_EQ(failure_of(me.comm), ncclInvalidUsage);
    EXPECT_THAT(
        last_error(),
        HasSubstr("in communicator test rank 0 calls ncclSend(float32, 10 elements, to rank 1), "
                  "number 1 of this pair, and rank 1 calls ncclRecv(float32, 11 elements"));
    meet();
    ncclCommAbort(me.comm);
    me.comm = nullptr;
    me.finish();
  });
}

/// Rank 0 would receive after a collective that rank 1 joins after its send: both would wait for
/// ever.
TEST(SimRules, TransferBeforeACollectiveOnOneRankOnly) {
  on_ranks(2, [](Rank& me) {
    Array<float> x(30, 1.0f), y(30, 1.0f);
    if (me.rank == 1) ncclSend(x.data(), 10, ncclFloat, 0, me.comm, me.stream);
    ncclAllReduce(y.data(), y.data(), 30, ncclFloat, ncclSum, me.comm, me.stream);
    if (me.rank == 0) ncclRecv(x.data(), 10, ncclFloat, 1, me.comm, me.stream);
    EXPECT_EQ(failure_of(me.comm), ncclInvalidUsage);
    EXPECT_THAT(
        last_error(),
        HasSubstr("rank 0 of communicator test is in ncclAllReduce, call 1, and rank 1 waits for "
                  "it in ncclSend(float32, 10 elements, to rank 0) before that call"));
    meet();
    ncclCommAbort(me.comm);
    me.comm = nullptr;
    me.finish();
  });
}

/// A call that returns an error at once, on one rank, and launches nothing.
void expect_refused(ncclResult_t result, const Call& call,
                    const testing::Matcher<std::string>& text) {
  on_ranks(1, [&](Rank& me) {
    Array<float> in(30, 1.0f), out(30, 1.0f);
    EXPECT_EQ(call(me, in.data(), out.data()), result);
    EXPECT_THAT(last_error(), text);
    EXPECT_EQ(ncclAllReduce(in.data(), out.data(), 30, ncclFloat, ncclSum, me.comm, me.stream),
              ncclSuccess);
    me.finish();
  });
}

TEST(SimRules, NullPointers) {
  expect_refused(
      ncclInvalidArgument,
      [](Rank& me, float* in, float*) {
        return ncclAllReduce(in, nullptr, 10, ncclFloat, ncclSum, me.comm, me.stream);
      },
      HasSubstr("rank 0 of 1 of communicator test: ncclAllReduce(sum, float32, 10 elements): the "
                "output pointer is null"));
}

TEST(SimRules, HostPointers) {
  static float host[10];
  expect_refused(
      ncclInvalidArgument,
      [](Rank& me, float*, float* out) {
        return ncclAllReduce(host, out, 10, ncclFloat, ncclSum, me.comm, me.stream);
      },
      AllOf(HasSubstr("the input pointer"), HasSubstr("is not device memory")));
}

TEST(SimRules, PointersOfAnotherDevice) {
  expect_refused(
      ncclInvalidArgument,
      [](Rank& me, float* in, float*) {
        cudaSetDevice(1);
        const Array<float> other(10, 0.0f);
        cudaSetDevice(0);
        return ncclAllReduce(in, other.data(), 10, ncclFloat, ncclSum, me.comm, me.stream);
      },
      HasSubstr("is memory of device 1, the communicator uses device 0"));
}

TEST(SimRules, OverlapOfInputAndOutput) {
  expect_refused(
      ncclInvalidUsage,
      [](Rank& me, float* in, float*) {
        return ncclAllReduce(in, in + 1, 10, ncclFloat, ncclSum, me.comm, me.stream);
      },
      HasSubstr("input and output overlap"));
  expect_refused(
      ncclInvalidUsage,
      [](Rank& me, float* in, float*) {
        return ncclAlltoAll(in, in, 10, ncclFloat, me.comm, me.stream);
      },
      HasSubstr("input and output overlap"));
}

TEST(SimRules, OverlapWithinAGroup) {
  expect_refused(
      ncclInvalidUsage,
      [](Rank& me, float* in, float* out) {
        ncclGroupStart();
        ncclAllReduce(in, out, 10, ncclFloat, ncclSum, me.comm, me.stream);
        ncclAllReduce(in, out + 9, 10, ncclFloat, ncclSum, me.comm, me.stream);
        return ncclGroupEnd();
      },
      HasSubstr(
          "overlaps the memory of ncclAllReduce(sum, float32, 10 elements) in the same group"));
}

TEST(SimRules, TypesAndRanksThatDoNotExist) {
  expect_refused(ncclInvalidArgument, all_reduce(10, static_cast<ncclDataType_t>(12)),
                 HasSubstr("there is no type 12"));
  expect_refused(ncclInvalidArgument, all_reduce(10, ncclFloat, static_cast<ncclRedOp_t>(5)),
                 HasSubstr("there is no operation 5"));
  expect_refused(ncclInvalidUsage, all_reduce(10, ncclFloat8e4m3),
                 HasSubstr("does not reduce this type"));
  expect_refused(
      ncclInvalidArgument,
      [](Rank& me, float* in, float*) {
        return ncclSend(in, 10, ncclFloat, 1, me.comm, me.stream);
      },
      HasSubstr("there is no rank 1"));
}

TEST(SimRules, UseAfterTheEnd) {
  on_ranks(1, [](Rank& me) {
    Array<float> x(10, 1.0f);
    const auto call = [&] {
      return ncclAllReduce(x.data(), x.data(), 10, ncclFloat, ncclSum, me.comm, me.stream);
    };
    EXPECT_EQ(ncclCommFinalize(me.comm), ncclSuccess);
    EXPECT_EQ(call(), ncclInvalidUsage);
    EXPECT_EQ(last_error(), "ncclAllReduce: rank 0 of 1 of communicator test was finalized");
    EXPECT_EQ(ncclCommDestroy(me.comm), ncclSuccess);
    EXPECT_EQ(call(), ncclInvalidArgument);
    EXPECT_EQ(last_error(), "ncclAllReduce: rank 0 of 1 of communicator test was destroyed");
    EXPECT_EQ(ncclCommDestroy(me.comm), ncclInvalidArgument);
    me.comm = join(new_id(), 1, 0);
    EXPECT_EQ(ncclCommAbort(me.comm), ncclSuccess);
    EXPECT_EQ(call(), ncclInvalidArgument);
    EXPECT_EQ(last_error(), "ncclAllReduce: rank 0 of 1 of communicator test was aborted");
    me.comm = nullptr;
    EXPECT_EQ(call(), ncclInvalidArgument);
    int nothing = 0;
    me.comm = reinterpret_cast<ncclComm_t>(&nothing);
    EXPECT_EQ(call(), ncclInvalidArgument);
    me.comm = nullptr;
  });
}

/// NCCL's user guide: no operation of the communicator may be under way.
TEST(SimRules, SplitWithAnOperationUnderWay) {
  on_ranks(2, [](Rank& me) {
    Array<float> x(10, 1.0f);
    if (me.rank == 0) ncclAllReduce(x.data(), x.data(), 10, ncclFloat, ncclSum, me.comm, me.stream);
    ncclComm_t half = nullptr;
    EXPECT_EQ(ncclCommSplit(me.comm, me.rank, 0, &half, nullptr), ncclInvalidUsage);
    EXPECT_THAT(
        last_error(),
        HasSubstr("ncclCommSplit on rank 0 of 2 of communicator test while operations of it are"));
    meet();
    ncclCommAbort(me.comm);
    me.comm = nullptr;
  });
}

TEST(SimRules, SplitAgainstFinalize) {
  on_ranks(2, [](Rank& me) {
    ncclComm_t half = nullptr;
    EXPECT_EQ(
        me.rank == 0 ? ncclCommSplit(me.comm, 0, 0, &half, nullptr) : ncclCommFinalize(me.comm),
        ncclInvalidUsage);
    EXPECT_THAT(last_error(), AllOf(HasSubstr("ncclCommSplit"), HasSubstr("ncclCommFinalize")));
    meet();
    ncclCommAbort(me.comm);
    me.comm = nullptr;
  });
}

/// The checker of races knows what an operation reads and writes.
TEST(SimRules, UseOfTheMemoryBesideAnOperation) {
  on_ranks(1, [](Rank& me) {
    Array<float> in(10, 1.0f), out(10, 1.0f);
    for (const void* used : {in.data(), out.data()}) {
      EXPECT_EQ(ncclAllReduce(in.data(), out.data(), 10, ncclFloat, ncclSum, me.comm, me.stream),
                ncclSuccess);
      EXPECT_EQ(cudaMemsetAsync(const_cast<void*>(used), 0, 40, nullptr), cudaErrorLaunchFailure);
      ASSERT_FALSE(races().empty());
      EXPECT_THAT(races().back(), HasSubstr("ncclAllReduce"));
      forget_races();
    }
  });
}

/// One line, from whoever finds it first.
TEST(SimRules, AreToldOnce) {
  testing::internal::CaptureStderr();
  expect_mismatch(all_reduce(10), all_reduce(11), HasSubstr("differ"));
  const std::string text = testing::internal::GetCapturedStderr();
  const std::size_t first = text.find("differ in their collective");
  EXPECT_NE(first, std::string::npos);
  EXPECT_EQ(text.find("differ in their collective", first + 1), std::string::npos) << text;
}

}  // namespace
}  // namespace tessera::sim::nccl::test
