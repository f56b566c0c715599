// SPDX-License-Identifier: Apache-2.0
// Device memory over MPI: what the sums of collectives_test.cpp do not show. Late ranks, calls cut
// into many pieces, and memory that is used again make each missing wait visible, by a wrong value
// or to the race checker.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

#include "mpi/comm/mpi_main.hpp"
#include "mpi/comm/typed_values.hpp"
#include "tessera/comm/failure.hpp"

namespace tessera::comm {
namespace {

using std::chrono::milliseconds;
using test::Values;
using test::world;
using testing::HasSubstr;

/// A setting of the process while it lives.
class Setting {
 public:
  Setting(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  Setting(const Setting&) = delete;
  ~Setting() { unsetenv(name_); }

 private:
  const char* name_;
};

class Staged : public testing::TestWithParam<Backend> {
 protected:
  void SetUp() override {
    if (!test::on_device()) GTEST_SKIP() << "no device";
    forget_failure();  // of another suite: a rank that waits long looks for one
    world().control().barrier();
    comm_ = make("tp");
  }
  static std::unique_ptr<Communicator> make(const std::string& axis) {
    return world().make(GetParam(), axis, Memory::device);
  }
  static int me() { return world().rank(); }
  static int n() { return world().size(); }
  static bool last() { return me() == n() - 1; }
  static Values values(DType dtype, std::int64_t count, double fill = 1) {
    return Values(dtype, count, fill, Memory::device);
  }
  static void come_late() {
    if (last()) std::this_thread::sleep_for(milliseconds(100));
  }
  std::unique_ptr<Communicator> comm_;
};

constexpr std::int64_t kMany = 300'000;  ///< floats: more than MPI sends at once

/// What the compute stream has to do first is waited for: fills that nobody has waited for.
TEST_P(Staged, StartsBehindTheComputeStream) {
  test::DeviceBytes x(kMany);
  for (int round = 0; round < 3; ++round) {
    x.fill(round + 1);
    comm_->all_reduce({x.data(), kMany, DType::u8, Memory::device}).wait();
    std::vector<std::uint8_t> got(kMany);
    x.download(got.data());
    EXPECT_EQ(got.front(), n() * (round + 1));
    EXPECT_EQ(got.back(), n() * (round + 1));
  }
}

/// The compute stream, and not the host, waits for the copies to the device.
TEST_P(Staged, ComputesBehindTheCopies) {
  test::DeviceBytes x(kMany), y(kMany * static_cast<std::size_t>(n()));
  x.fill(7);
  comm_
      ->all_gather({x.data(), kMany, DType::u8, Memory::device},
                   {y.data(), kMany * n(), DType::u8, Memory::device})
      .wait();
  y.fill(1);  // which a copy that came later would undo
  std::vector<std::uint8_t> got(static_cast<std::size_t>(kMany * n()));
  y.download(got.data());
  EXPECT_EQ(std::count(got.begin(), got.end(), 1), kMany * n());
}

/// One rank is late, so that what the others have to send lies in pinned memory for a while, and
/// what they get comes late. Behind it come more operations, on this and on other communicators,
/// that want such memory.
TEST_P(Staged, MemoryIsUsedAgainOnlyWhenItIsFree) {
  const auto other = make("dp");
  come_late();
  std::vector<Values> sums, gathered, own;
  for (int k = 0; k < 8; ++k) {
    sums.push_back(values(DType::f32, kMany, me() + k));
    own.push_back(values(DType::f32, 1000, me() - k));
    gathered.push_back(values(DType::f32, 1000 * n(), 99));
  }
  std::vector<Request> requests;
  for (std::size_t k = 0; k < 8; ++k) {
    requests.push_back((k % 2 ? *comm_ : *other).all_reduce(sums[k].buffer()));
    requests.push_back((k % 3 ? *comm_ : *other).all_gather(own[k].buffer(), gathered[k].buffer()));
  }
  for (Request& request : requests) request.wait();
  for (int k = 0; k < 8; ++k) {
    const auto i = static_cast<std::size_t>(k);
    const double expected = n() * k + n() * (n() - 1) / 2.0;
    for (const std::int64_t at : {std::int64_t{0}, kMany / 2, kMany - 1})
      EXPECT_EQ(sums[i][at], expected) << k;
    for (int r = 0; r < n(); ++r) EXPECT_EQ(gathered[i][r * 1000 + 999], r - k);
  }
}

/// Pieces of 1024 bytes: of one element, of uneven ends, and with nothing to send for some.
TEST_P(Staged, MessagesAreCut) {
  const Setting setting("TESSERA_STAGING_BYTES", "1024");
  const auto comm = make("cut");
  constexpr std::int64_t kCount = 3001;
  Values sum = values(DType::bf16, kCount, me()), in = values(DType::f32, kCount * n()),
         out = values(DType::f32, kCount);
  Values turned = values(DType::f32, kCount * n()), root = values(DType::i64, kCount, me());
  for (std::int64_t i = 0; i < kCount * n(); ++i) in.set(i, static_cast<double>(i % 100 + me()));
  std::vector<Request> requests;
  requests.push_back(comm->all_reduce(sum.buffer()));
  requests.push_back(comm->reduce_scatter(in.buffer(), out.buffer()));
  requests.push_back(comm->all_to_all(in.buffer(), turned.buffer()));
  requests.push_back(comm->broadcast(root.buffer(), n() - 1));
  for (Request& request : requests) request.wait();
  for (std::int64_t i = 0; i < kCount; ++i) {
    const double ranks = n() * (n() - 1) / 2.0;
    ASSERT_EQ(sum[i], ranks);
    ASSERT_EQ(out[i], static_cast<double>(n() * ((me() * kCount + i) % 100)) + ranks);
    ASSERT_EQ(root[i], n() - 1);
    for (int r = 0; r < n(); ++r)
      ASSERT_EQ(turned[r * kCount + i], static_cast<double>((me() * kCount + i) % 100 + r));
  }
}

/// Transfers of different lengths with both neighbours; each is cut by itself.
TEST_P(Staged, GroupsAreCut) {
  const Setting setting("TESSERA_STAGING_BYTES", "1024");
  const auto comm = make("cut");
  const int next = (me() + 1) % n(), previous = (me() + n() - 1) % n();
  Values longer = values(DType::f64, 5000, me()), shorter = values(DType::u8, 3, me());
  Values from_previous = values(DType::f64, 5000, 99), from_next = values(DType::u8, 3, 99);
  comm->group_start();
  comm->send(longer.buffer(), next);
  comm->send(shorter.buffer(), previous);
  comm->recv(from_previous.buffer(), previous);
  comm->recv(from_next.buffer(), next);
  comm->group_end().wait();
  for (std::int64_t i = 0; i < 5000; ++i) ASSERT_EQ(from_previous[i], previous);
  for (std::int64_t i = 0; i < 3; ++i) ASSERT_EQ(from_next[i], next);
}

/// The caller goes on while a peer is late.
TEST_P(Staged, IssuingHoldsNobody) {
  if (GetParam() == Backend::strict || n() < 2)
    GTEST_SKIP() << "strict operations hold their callers";
  Values x = values(DType::f32, 10);
  const auto begin = std::chrono::steady_clock::now();
  Request request;
  if (!last()) request = comm_->all_reduce(x.buffer());
  world().control().barrier();  // the last rank comes to the operation behind it
  if (last()) request = comm_->all_reduce(x.buffer());
  request.wait();
  EXPECT_EQ(x[0], n());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
}

TEST_P(Staged, DisagreementsAreFound) {
  if (n() < 2) GTEST_SKIP() << "nobody to disagree with";
  set_check_collectives(true);
  Values x = values(DType::f32, last() ? 11 : 10);
  std::string error = "none";
  try {
    comm_->all_reduce(x.buffer()).wait();
  } catch (const Error& thrown) {
    error = thrown.what();
  }
  set_check_collectives(false);
  EXPECT_THAT(error, HasSubstr("the ranks of axis tp disagree"));
}

/// A second opinion: on two ranks there is one order of a sum, on more NCCL has another one.
TEST_P(Staged, SumsAgreeWithNccl) {
  const auto nccl = world().make(Backend::nccl, "tp");
  for (const DType dtype : {DType::f32, DType::bf16}) {
    Values x = values(dtype, 5000), y = values(dtype, 5000);
    for (std::int64_t i = 0; i < 5000; ++i) {
      const double value = 1.0 / static_cast<double>(3 + me() * 7 + i);
      x.set(i, value), y.set(i, value);
    }
    Request first = comm_->all_reduce(x.buffer()), second = nccl->all_reduce(y.buffer());
    first.wait(), second.wait();
    if (n() <= 2) {
      EXPECT_EQ(x.bytes(), y.bytes());
    }
    const double tolerance = dtype == DType::f32 ? 1e-6 : 4e-2;
    for (std::int64_t i = 0; i < 5000; ++i) ASSERT_NEAR(x[i], y[i], tolerance * x[i]);
  }
}

/// As above, where MPI says that it takes device pointers; what it reads and writes is in order.
TEST_P(Staged, DevicePointersAreGivenToAnMpiThatTakesThem) {
  const char* aware = std::getenv("TESSERA_SIM_CUDA_AWARE_MPI");
  if (!aware || std::string(aware) != "1") GTEST_SKIP() << "this MPI takes none";
  test::DeviceBytes all(kMany * static_cast<std::size_t>(n()));
  all.fill(me() + 1);
  const Buffer buffer{all.data(), kMany * n(), DType::u8, Memory::device};
  comm_->all_gather(buffer.part(kMany * me(), kMany), buffer).wait();
  std::vector<std::uint8_t> got(static_cast<std::size_t>(kMany * n()));
  all.download(got.data());
  for (int r = 0; r < n(); ++r) EXPECT_EQ(got[static_cast<std::size_t>(kMany * r)], r + 1);
}

/// A sum that MPI cannot make fails where it is waited for, and the communicator with it.
TEST_P(Staged, FailuresReachTheirWaiters) {
  Values x = values(DType::f8e4m3, 10);
  const auto sum = [&] { comm_->all_reduce(x.buffer()).wait(); };
  EXPECT_THROW(sum(), Error);
  EXPECT_THAT([&] { sum(); }, testing::ThrowsMessage<Error>(
                                  HasSubstr("axis tp cannot be used after its first failure")));
  EXPECT_THAT(Watchdog::recent_calls(),
              testing::ContainsRegex("all_reduce\\(sum, f8e4m3, 10 elements\\), call 1: failed"));
}

/// One rank fails while it has operations under way that nobody joins.
TEST_P(Staged, UnwindingEndsWithOperationsUnderWay) {
  if (GetParam() == Backend::strict) GTEST_SKIP() << "strict operations are never under way";
  const auto begin = std::chrono::steady_clock::now();
  Values x = values(DType::f32, 10);
  EXPECT_THROW(
      {
        const auto second = make("pp");
        second->group_start();
        second->recv(x.buffer(), (me() + 1) % n());  // which nobody sends
        Request request = second->group_end();
        fail(ExitCode::environment, "out of memory");
      },
      Error);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
  Values y = values(DType::f32, 10);
  comm_->all_reduce(y.buffer()).wait();
  EXPECT_EQ(y[0], n());
}

/// By their callers, as they called them; not what carries them.
TEST_P(Staged, CallsAreLoggedOnce) {
  const auto comm = comm_->split(0, me(), "logged " + std::string(comm_->backend()));
  Values x = values(DType::f32, 10);
  comm->all_reduce(x.buffer()).wait();
  const std::string calls = Watchdog::recent_calls(), axis = comm->axis() + " ";
  const std::size_t only = calls.find(axis);
  ASSERT_NE(only, std::string::npos) << calls;
  EXPECT_THAT(
      calls.substr(only),
      HasSubstr(fmt::format("{}/{}: all_reduce(sum, f32, 10 elements), call 1: done", me(), n())));
  EXPECT_EQ(calls.find(axis, only + 1), std::string::npos) << calls;
}

INSTANTIATE_TEST_SUITE_P(Backends, Staged, testing::Values(Backend::mpi, Backend::strict),
                         [](const auto& info) {
                           return info.param == Backend::mpi ? "mpi" : "strict";
                         });

}  // namespace
}  // namespace tessera::comm
