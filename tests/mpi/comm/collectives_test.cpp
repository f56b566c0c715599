// SPDX-License-Identifier: Apache-2.0
// Every operation x dtype x size against what each rank can compute alone: over MPI and under
// strict rules, also with device memory where the run is about that, and then over NCCL, too.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "mpi/comm/mpi_main.hpp"
#include "mpi/comm/typed_values.hpp"

namespace tessera::comm {
namespace {

using test::Values;
using test::world;

/// Element i of rank r: so small that sums over all ranks are exact in every dtype.
double value(int r, std::int64_t i) {
  return static_cast<double>((r * 3 + i * 5) % (world().size() > 8 ? 4 : 13));
}

class Collectives : public testing::TestWithParam<Backend> {
 protected:
  void SetUp() override { comm_ = world().make(GetParam(), "test", test::test_memory()); }
  int n() const { return comm_->size(); }
  int me() const { return comm_->rank(); }
  Values values(DType dtype, std::int64_t count, double fill = 0) const {
    return Values(dtype, count, fill, test::test_memory());
  }
  Values mine(DType dtype, std::int64_t count) const {
    Values own = values(dtype, count);
    for (std::int64_t i = 0; i < count; ++i) own.set(i, value(me(), i));
    return own;
  }
  std::vector<DType> reducible() const {
    std::vector<DType> types(std::begin(test::kReducible), std::end(test::kReducible));
    if (GetParam() == Backend::nccl) std::erase(types, DType::i16);
    return types;
  }
  double expected(Op op, std::int64_t i) const {
    double result = value(0, i);
    for (int r = 1; r < n(); ++r) {
      const double x = value(r, i);
      result = op == Op::sum   ? result + x
               : op == Op::max ? std::max(result, x)
                               : std::min(result, x);
    }
    return result;
  }
  std::unique_ptr<Communicator> comm_;
};

// Large enough for the two-stage all-reduce, not divisible by the ranks; and the small cases.
constexpr std::int64_t kSizes[] = {0, 1, 3, 1000, 20011};
constexpr Op kOps[] = {Op::sum, Op::max, Op::min};

TEST_P(Collectives, AllReduce) {
  for (const DType dtype : reducible()) {
    for (const Op op : kOps) {
      for (const std::int64_t count : kSizes) {
        Values x = mine(dtype, count);
        comm_->all_reduce(x.buffer(), op).wait();
        for (std::int64_t i = 0; i < count; ++i)
          ASSERT_EQ(x[i], expected(op, i)) << name_of(dtype) << ' ' << count << ' ' << i;
      }
    }
  }
}

TEST_P(Collectives, AllGather) {
  for (const DType dtype : {DType::f64, DType::bf16, DType::u8, DType::f8e4m3}) {
    for (const std::int64_t count : kSizes) {
      Values x = mine(dtype, count), all = values(dtype, count * n(), 99);
      comm_->all_gather(x.buffer(), all.buffer()).wait();
      for (int r = 0; r < n(); ++r)
        for (std::int64_t i = 0; i < count; ++i) ASSERT_EQ(all[r * count + i], value(r, i));
    }
  }
}

TEST_P(Collectives, AllGatherInPlace) {
  const std::int64_t count = 1234;
  Values all = values(DType::f32, count * n(), 99);
  for (std::int64_t i = 0; i < count; ++i) all.set(me() * count + i, value(me(), i));
  comm_->all_gather(all.buffer().part(me() * count, count), all.buffer()).wait();
  for (int r = 0; r < n(); ++r)
    for (std::int64_t i = 0; i < count; ++i) ASSERT_EQ(all[r * count + i], value(r, i));
}

TEST_P(Collectives, ReduceScatter) {
  for (const DType dtype : reducible()) {
    for (const Op op : kOps) {
      for (const std::int64_t count : kSizes) {
        Values x = mine(dtype, count * n()), part = values(dtype, count, 99);
        comm_->reduce_scatter(x.buffer(), part.buffer(), op).wait();
        for (std::int64_t i = 0; i < count; ++i)
          ASSERT_EQ(part[i], expected(op, me() * count + i)) << name_of(dtype);
      }
    }
  }
}

TEST_P(Collectives, ReduceScatterInPlace) {
  const std::int64_t count = 3000;
  for (const DType dtype : {DType::f32, DType::bf16}) {
    Values x = mine(dtype, count * n());
    comm_->reduce_scatter(x.buffer(), x.buffer().part(me() * count, count)).wait();
    for (std::int64_t i = 0; i < count; ++i)
      ASSERT_EQ(x[me() * count + i], expected(Op::sum, me() * count + i));
  }
}

TEST_P(Collectives, Broadcast) {
  for (int root = 0; root < n(); ++root) {
    for (const std::int64_t count : kSizes) {
      Values x = mine(DType::i32, count);
      comm_->broadcast(x.buffer(), root).wait();
      for (std::int64_t i = 0; i < count; ++i) ASSERT_EQ(x[i], value(root, i));
    }
  }
}

TEST_P(Collectives, AllToAll) {
  for (const std::int64_t count : kSizes) {
    Values x = mine(DType::f16, count * n()), y = values(DType::f16, count * n(), 99);
    comm_->all_to_all(x.buffer(), y.buffer()).wait();
    for (int r = 0; r < n(); ++r)
      for (std::int64_t i = 0; i < count; ++i)
        ASSERT_EQ(y[r * count + i], value(r, me() * count + i));
  }
}

/// Rank r sends (r + 2s) % 4 * 50 elements to rank s: uneven, and nothing for some.
TEST_P(Collectives, AllToAllUneven) {
  const auto count = [](int from, int to) {
    return static_cast<std::int64_t>((from + 2 * to) % 4 * 50);
  };
  std::vector<std::int64_t> out_counts, in_counts;
  for (int r = 0; r < n(); ++r) {
    in_counts.push_back(count(me(), r));
    out_counts.push_back(count(r, me()));
  }
  const auto total = [](const auto& counts) {
    return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  };
  Values x = mine(DType::f32, total(in_counts)), y = values(DType::f32, total(out_counts), 99);
  comm_->all_to_all_v(x.buffer(), in_counts, y.buffer(), out_counts).wait();
  std::int64_t at = 0;
  for (int r = 0; r < n(); ++r) {
    std::int64_t first = 0;
    for (int s = 0; s < me(); ++s) first += count(r, s);
    for (std::int64_t i = 0; i < count(r, me()); ++i) ASSERT_EQ(y[at++], value(r, first + i));
  }
}

/// Many operations under way at once, waited for in another order on every rank: two-stage
/// all-reduces must not block each other.
TEST_P(Collectives, RequestsMayBeWaitedForInAnyOrder) {
  const std::int64_t count = 20000;
  auto other = comm_->split(0, me(), "other");
  std::vector<Values> summed;
  for (int k = 0; k < 6; ++k) summed.push_back(mine(k % 2 ? DType::f32 : DType::bf16, count));
  Values gathered = values(DType::f32, count * n(), 99), own = mine(DType::f32, count);
  std::vector<Request> requests;
  for (int k = 0; k < 6; ++k)
    requests.push_back((k % 2 ? *comm_ : *other)
                           .all_reduce(summed[static_cast<std::size_t>(k)].buffer(), Op::sum));
  requests.push_back(comm_->all_gather(own.buffer(), gathered.buffer()));
  std::rotate(requests.begin(), requests.begin() + me() % 7, requests.end());
  if (me() % 2) std::reverse(requests.begin(), requests.end());
  requests.front().test();
  for (Request& request : requests) request.wait();
  for (const Values& v : summed)
    for (std::int64_t i = 0; i < count; i += 7) ASSERT_EQ(v[i], expected(Op::sum, i));
  ASSERT_EQ(gathered[count * n() - 1], value(n() - 1, count - 1));
}

/// A ring in which everybody sends before receiving: all transfers of a group progress together.
TEST_P(Collectives, GroupedTransfers) {
  for (const std::int64_t count : {0, 1, 50000}) {
    const int next = (me() + 1) % n(), previous = (me() + n() - 1) % n();
    Values a = mine(DType::f32, count), b = mine(DType::i64, 2);
    Values c = values(DType::f32, count, 99), d = values(DType::i64, 2, 99);
    comm_->group_start();
    comm_->send(a.buffer(), next);
    comm_->send(b.buffer(), next);
    comm_->recv(c.buffer(), previous);
    comm_->recv(d.buffer(), previous);
    comm_->group_end().wait();
    for (std::int64_t i = 0; i < count; ++i) ASSERT_EQ(c[i], value(previous, i));
    for (std::int64_t i = 0; i < 2; ++i) ASSERT_EQ(d[i], value(previous, i));
  }
}

TEST_P(Collectives, CollectivesInsideOfGroupsAreErrors) {
  Values a = mine(DType::f32, n()), b = mine(DType::f32, n());
  comm_->group_start();
  EXPECT_THROW(static_cast<void>(comm_->all_reduce(a.buffer(), Op::sum)), Error);
  EXPECT_THROW(static_cast<void>(comm_->all_to_all(a.buffer(), b.buffer())), Error);
  comm_->group_end().wait();
}

TEST_P(Collectives, TransfersOutsideOfGroupsAreErrors) {
  Values a = mine(DType::f32, 3);
  EXPECT_THROW(comm_->send(a.buffer(), 0), Error);
  EXPECT_THROW(comm_->recv(a.buffer(), 0), Error);
  EXPECT_THROW(static_cast<void>(comm_->group_end()), Error);
}

TEST_P(Collectives, Split) {
  auto half = comm_->split(me() % 2, -me(), "half");
  EXPECT_EQ(half->size(), (n() + 1 - me() % 2) / 2);
  EXPECT_EQ(half->axis(), "half");
  EXPECT_EQ(half->backend(), comm_->backend());
  EXPECT_EQ(all_reduce_scalar(*half, std::int64_t{me()}, Op::max) % 2, me() % 2);
  EXPECT_EQ(half->rank(), half->size() - 1 - me() / 2);
  auto first = comm_->split(me() == 0 ? 0 : -1, 0, "first");
  EXPECT_EQ(first != nullptr, me() == 0);
}

TEST_P(Collectives, Scalars) {
  EXPECT_EQ(all_reduce_scalar(*comm_, 0.5), 0.5 * n());
  EXPECT_EQ(all_reduce_scalar(*comm_, static_cast<double>(me()), Op::max), n() - 1);
  EXPECT_EQ(all_reduce_scalar(*comm_, std::int64_t{1} << 40, Op::sum),
            (std::int64_t{1} << 40) * n());
  EXPECT_EQ(broadcast_string(*comm_, me() == 0 ? "hello" : "", 0), "hello");
  const auto strings = all_gather_strings(*comm_, std::string(static_cast<std::size_t>(me()), 'x'));
  for (int r = 0; r < n(); ++r)
    EXPECT_EQ(strings[static_cast<std::size_t>(r)], std::string(static_cast<std::size_t>(r), 'x'));
  std::vector<std::string> taken;
  gather_strings(*comm_, std::string(static_cast<std::size_t>(me()), 'y'),
                 [&](const std::string& text) { taken.push_back(text); });
  ASSERT_EQ(taken.size(), me() == 0 ? static_cast<std::size_t>(n()) : 0u);
  for (std::size_t r = 0; r < taken.size(); ++r) EXPECT_EQ(taken[r], std::string(r, 'y'));
  comm_->barrier();
}

TEST_P(Collectives, CountsTraffic) {
  Values x = mine(DType::bf16, 10 * n()), part = values(DType::bf16, 10);
  comm_->reduce_scatter(x.buffer(), part.buffer()).wait();
  EXPECT_EQ(comm_->traffic().calls, 1);
  EXPECT_EQ(comm_->traffic().bytes, 20 * n());
  EXPECT_EQ(comm_->traffic().exposed_seconds > 0,
            GetParam() != Backend::nccl);  // whose waits do not hold the host
}

std::vector<Backend> backends() {
  if (test::on_device()) return {Backend::mpi, Backend::strict, Backend::nccl};
  return {Backend::mpi, Backend::strict};
}

std::string name_of(Backend backend) {
  return backend == Backend::mpi ? "mpi" : backend == Backend::strict ? "strict" : "nccl";
}

INSTANTIATE_TEST_SUITE_P(Backends, Collectives, testing::ValuesIn(backends()),
                         [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace tessera::comm
