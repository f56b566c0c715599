// SPDX-License-Identifier: Apache-2.0
// Every collective on 1 to 4 ranks, in place and not, against what each rank can compute alone.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "ranks.hpp"

namespace tessera::sim::nccl::test {
namespace {

using Floats = std::vector<float>;

float value(int rank, std::size_t i) {
  return static_cast<float>((static_cast<std::size_t>(rank) * 3 + i * 5) % 13);
}

Floats input(int rank, std::size_t count, std::size_t first = 0) {
  Floats values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(value(rank, first + i));
  return values;
}

Floats sum(int size, std::size_t count, std::size_t first = 0) {
  Floats values(count, 0);
  for (int r = 0; r < size; ++r)
    for (std::size_t i = 0; i < count; ++i) values[i] += value(r, first + i);
  return values;
}

Floats concatenated(const std::vector<Floats>& parts) {
  Floats all;
  for (const Floats& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

class SimCollectives : public testing::TestWithParam<int> {
 protected:
  int size() const { return GetParam(); }
  std::size_t ranks() const { return static_cast<std::size_t>(size()); }
};

constexpr std::size_t kCounts[] = {1, 3, 1000, 5003};

TEST_P(SimCollectives, AllReduce) {
  on_ranks(size(), [&](Rank& me) {
    for (const std::size_t count : kCounts) {
      Array<float> in(input(me.rank, count)), out(count, 99.0f);
      EXPECT_EQ(ncclAllReduce(in.data(), out.data(), count, ncclFloat, ncclSum, me.comm, me.stream),
                ncclSuccess);
      me.finish();
      EXPECT_EQ(out.values(), sum(size(), count));
      EXPECT_EQ(in.values(), input(me.rank, count));
      EXPECT_EQ(ncclAllReduce(in.data(), in.data(), count, ncclFloat, ncclSum, me.comm, me.stream),
                ncclSuccess);
      me.finish();
      EXPECT_EQ(in.values(), sum(size(), count));
    }
  });
}

TEST_P(SimCollectives, ReduceScatter) {
  on_ranks(size(), [&](Rank& me) {
    for (const std::size_t count : kCounts) {
      const std::size_t first = static_cast<std::size_t>(me.rank) * count;
      Array<float> in(input(me.rank, count * ranks())), out(count, 99.0f);
      EXPECT_EQ(
          ncclReduceScatter(in.data(), out.data(), count, ncclFloat, ncclSum, me.comm, me.stream),
          ncclSuccess);
      me.finish();
      EXPECT_EQ(out.values(), sum(size(), count, first));
      ncclReduceScatter(in.data(), in.data() + first, count, ncclFloat, ncclSum, me.comm,
                        me.stream);
      me.finish();
      const Floats after = in.values();
      EXPECT_EQ(Floats(after.begin() + static_cast<std::ptrdiff_t>(first),
                       after.begin() + static_cast<std::ptrdiff_t>(first + count)),
                sum(size(), count, first));
    }
  });
}

TEST_P(SimCollectives, AllGather) {
  on_ranks(size(), [&](Rank& me) {
    for (const std::size_t count : kCounts) {
      std::vector<Floats> parts;
      for (int r = 0; r < size(); ++r) parts.push_back(input(r, count));
      Array<float> in(input(me.rank, count)), out(count * ranks(), 99.0f);
      EXPECT_EQ(ncclAllGather(in.data(), out.data(), count, ncclFloat, me.comm, me.stream),
                ncclSuccess);
      me.finish();
      EXPECT_EQ(out.values(), concatenated(parts));
      Floats own(count * ranks(), 99.0f);
      for (std::size_t i = 0; i < count; ++i)
        own[static_cast<std::size_t>(me.rank) * count + i] = value(me.rank, i);
      Array<float> both(own);
      ncclAllGather(both.data() + static_cast<std::size_t>(me.rank) * count, both.data(), count,
                    ncclFloat, me.comm, me.stream);
      me.finish();
      EXPECT_EQ(both.values(), concatenated(parts));
    }
  });
}

TEST_P(SimCollectives, AllToAll) {
  on_ranks(size(), [&](Rank& me) {
    for (const std::size_t count : kCounts) {
      std::vector<Floats> parts;
      for (int r = 0; r < size(); ++r)
        parts.push_back(input(r, count, static_cast<std::size_t>(me.rank) * count));
      Array<float> in(input(me.rank, count * ranks())), out(count * ranks(), 99.0f);
      EXPECT_EQ(ncclAlltoAll(in.data(), out.data(), count, ncclFloat, me.comm, me.stream),
                ncclSuccess);
      me.finish();
      EXPECT_EQ(out.values(), concatenated(parts));
    }
  });
}

TEST_P(SimCollectives, Broadcast) {
  on_ranks(size(), [&](Rank& me) {
    for (int root = 0; root < size(); ++root) {
      Array<float> in(input(me.rank, 1000)), out(1000, 99.0f);
      ncclBroadcast(me.rank == root ? in.data() : nullptr, out.data(), 1000, ncclFloat, root,
                    me.comm, me.stream);
      me.finish();
      EXPECT_EQ(out.values(), input(root, 1000));
      ncclBroadcast(in.data(), in.data(), 1000, ncclFloat, root, me.comm, me.stream);
      me.finish();
      EXPECT_EQ(in.values(), input(root, 1000));
    }
  });
}

/// Zero elements: nothing happens, on no rank.
TEST_P(SimCollectives, OfNothing) {
  on_ranks(size(), [&](Rank& me) {
    EXPECT_EQ(ncclAllReduce(nullptr, nullptr, 0, ncclFloat, ncclSum, me.comm, me.stream),
              ncclSuccess);
    me.finish();
  });
}

/// Many under way at once, on one stream and in the order of their calls.
TEST_P(SimCollectives, Queue) {
  on_ranks(size(), [&](Rank& me) {
    Array<std::int64_t> x({me.rank + std::int64_t{1}});
    for (int k = 0; k < 30; ++k)
      ncclAllReduce(x.data(), x.data(), 1, ncclInt64, k % 2 ? ncclMax : ncclSum, me.comm,
                    me.stream);
    me.finish();
    std::int64_t expected = size() * (size() + 1) / 2;
    for (int k = 2; k < 30; k += 2) expected *= size();
    EXPECT_EQ(x.values()[0], expected);
  });
}

/// Nobody leaves before all have read: what follows on the stream may overwrite the input.
TEST_P(SimCollectives, InputsMayChangeBehindThem) {
  on_ranks(size(), [&](Rank& me) {
    const std::size_t count = 20000;
    Array<int> in(count, 0), out(count * ranks(), -1);
    std::vector<int> expected;
    for (int r = 0; r < size(); ++r) expected.insert(expected.end(), count, 0x01010101 * r);
    for (int k = 0; k < 20; ++k) {
      cudaMemsetAsync(in.data(), me.rank, count * sizeof(int), me.stream);
      ncclAllGather(in.data(), out.data(), count, ncclInt, me.comm, me.stream);
      cudaMemsetAsync(in.data(), 77, count * sizeof(int), me.stream);
      me.finish();
      EXPECT_EQ(out.values(), expected);
    }
  });
}

/// Operations of one communicator on two streams run in the order of their calls, as NCCL orders
/// them.
TEST_P(SimCollectives, OnTwoStreams) {
  on_ranks(size(), [&](Rank& me) {
    cudaStream_t other = nullptr;
    cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
    Array<float> a(1000, 1.0f), b(1000, 2.0f);
    for (int k = 0; k < 10; ++k) {
      ncclAllReduce(a.data(), a.data(), 1000, ncclFloat, ncclMax, me.comm, me.stream);
      ncclAllReduce(b.data(), b.data(), 1000, ncclFloat, ncclMax, me.comm, other);
    }
    me.finish();
    EXPECT_EQ(cudaStreamSynchronize(other), cudaSuccess);
    EXPECT_EQ(a.values()[999], 1.0f);
    EXPECT_EQ(b.values()[999], 2.0f);
    cudaStreamDestroy(other);
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, SimCollectives, testing::Values(1, 2, 3, 4));

}  // namespace
}  // namespace tessera::sim::nccl::test
