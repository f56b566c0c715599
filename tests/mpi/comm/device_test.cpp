// SPDX-License-Identifier: Apache-2.0
// Communicators of device memory, over NCCL or its double: what they do besides the right sums
// (collectives_test.cpp).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

#include "mpi/comm/mpi_main.hpp"
#include "mpi/comm/typed_values.hpp"
#include "mpi/comm/watchdog_reports.hpp"
#include "nccl_communicator.hpp"
#include "peers.hpp"
#include "tessera/comm/device.hpp"
#include "tessera/comm/failure.hpp"

namespace tessera::comm {
namespace {

using std::chrono::milliseconds;
using test::Values;
using test::WatchdogReports;
using test::world;
using testing::AllOf;
using testing::HasSubstr;

class Device : public testing::Test {
 protected:
  void SetUp() override {
    if (!test::on_device()) GTEST_SKIP() << "no device";
    comm_ = world().make(Backend::nccl, "tp");
  }
  int me() const { return world().rank(); }
  int n() const { return world().size(); }
  bool last() const { return me() == n() - 1; }
  static void meet() { world().control().barrier(); }
  static Values values(DType dtype, std::int64_t count, double fill = 1) {
    return Values(dtype, count, fill, Memory::device);
  }
  template <class Function>
  static std::string error_of(Function call) {
    try {
      call();
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }
  static std::string all_reduce(Communicator& comm, std::int64_t count) {
    Values x = values(DType::f32, count);
    return error_of([&] { comm.all_reduce(x.buffer()).wait(); });
  }

  std::unique_ptr<Communicator> comm_;
};

/// Real NCCL does not compare what its ranks call, and nobody injects failures into it.
bool on_the_double() { return test::wanted_device() == "sim"; }

/// No promise of which bits, but the same ones everywhere.
TEST_F(Device, AllRanksGetTheSameBits) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    Values x = values(dtype, 1000);
    for (std::int64_t i = 0; i < 1000; ++i) x.set(i, 1.0 / static_cast<double>(3 + me() + i));
    comm_->all_reduce(x.buffer()).wait();
    const std::string mine(reinterpret_cast<const char*>(x.bytes().data()), x.bytes().size());
    for (const std::string& other : all_gather_strings(*comm_, mine)) EXPECT_EQ(other, mine);
  }
}

/// The first operation connects the ranks: NCCL holds the host until all have come, so that the
/// late rank must have taken part in one before.
TEST_F(Device, WatchdogNamesTheOperationThatWaits) {
  if (n() < 2) GTEST_SKIP() << "nobody to wait for";
  EXPECT_EQ(all_reduce(*comm_, 10), "no error");
  Values x = values(DType::f32, 10);
  {
    WatchdogReports reports(std::chrono::seconds(2));
    if (last()) {
      meet();
      comm_->all_reduce(x.buffer()).wait();
    } else {
      comm_->all_reduce(x.buffer()).wait();
      EXPECT_THAT(
          reports.first(),
          AllOf(HasSubstr(fmt::format("hangs in tp {}/{}: all_reduce(sum, f32, 10 elements), "
                                      "call 2: waiting for ",
                                      me(), n())),
                HasSubstr(fmt::format("rank {} (", n() - 1))));
      meet();
    }
    EXPECT_EQ(x[0], n());
  }
}

TEST_F(Device, CheckedCallsThatDisagreeAreAnError) {
  if (n() < 2) GTEST_SKIP() << "nobody to disagree with";
  set_check_collectives(true);
  EXPECT_EQ(all_reduce(*comm_, 10), "no error");
  EXPECT_THAT(all_reduce(*comm_, last() ? 11 : 10), HasSubstr("the ranks of axis tp disagree"));
  set_check_collectives(false);
}

/// Unchecked, the double finds it, on the device: the watchdog tells it and then ends the wait.
TEST_F(Device, AFailureOnTheDeviceIsReportedAndFinal) {
  if (!on_the_double()) GTEST_SKIP() << "only the double of NCCL finds it";
  if (n() < 2) GTEST_SKIP() << "nobody to disagree with";
  {
    WatchdogReports reports(std::chrono::seconds(60));
    Values x = values(DType::f32, last() ? 11 : 10);
    const std::string error = error_of([&] { comm_->all_reduce(x.buffer()).wait(); });
    EXPECT_THAT(reports.first(),
                AllOf(HasSubstr("an operation failed: invalid usage"), HasSubstr("on axis tp"),
                      HasSubstr("differ in their collective 1")));
    EXPECT_EQ(error.find("differ") == std::string::npos, error == "no error");
    static_cast<void>(x[0]);  // ends, since the communicator is aborted
  }
  EXPECT_THAT(all_reduce(*comm_, 10),
              HasSubstr("axis tp cannot be used after its first failure: an operation failed"));
}

/// NCCL reads a communicator's name whenever it has something to say.
TEST_F(Device, PartsKeepTheirNames) {
  if (!on_the_double()) GTEST_SKIP() << "only the double of NCCL finds it";
  if (n() < 2) GTEST_SKIP() << "nobody to disagree with";
  const auto part = comm_->split(0, me(), "dp_shard and cp");
  WatchdogReports reports(std::chrono::seconds(60));
  Values x = values(DType::f32, last() ? 11 : 10);
  static_cast<void>(error_of([&] { part->all_reduce(x.buffer()).wait(); }));
  EXPECT_THAT(reports.first(), HasSubstr("the members of communicator dp_shard and cp differ"));
}

/// NCCL wants no operation of the communicator under way; the caller need not know.
TEST_F(Device, SplitsBehindAnOperation) {
  for (int k = 0; k < 20; ++k) {
    Values x = values(DType::f32, 100000);
    Request request = comm_->all_reduce(x.buffer());
    const auto part = comm_->split(me() % 2, me(), "half");
    request.wait();
    EXPECT_EQ(x[99999], n());
  }
}

TEST_F(Device, FailedCallsAreLoggedAsFailed) {
  if (!on_the_double()) GTEST_SKIP() << "only the double of NCCL finds it";
  setenv("TESSERA_SIM_NCCL_FAIL", "ncclAllReduce:1", 1);
  EXPECT_THAT(all_reduce(*comm_, 10), HasSubstr("all_reduce failed: unhandled system error"));
  unsetenv("TESSERA_SIM_NCCL_FAIL");
  EXPECT_THAT(Watchdog::recent_calls(),
              testing::ContainsRegex(
                  "tp [0-9]+/[0-9]+: all_reduce\\(sum, f32, 10 elements\\), call 1: failed"));
}

TEST_F(Device, BuffersOfNcclThatDoNotFitAreMissingMemory) {
  if (!on_the_double()) GTEST_SKIP() << "only the double of NCCL can be told to";
  setenv("TESSERA_SIM_NCCL_FAIL", "memory:1", 1);
  EXPECT_THAT(
      all_reduce(*comm_, 10),
      HasSubstr("out of memory on this GPU: NCCL has too little for its buffers (all_reduce"));
  unsetenv("TESSERA_SIM_NCCL_FAIL");
}

TEST_F(Device, UnevenExchangeWithItself) {
  std::vector<std::int64_t> in(static_cast<std::size_t>(n()), 1), out = in;
  ++in[static_cast<std::size_t>(me())];
  Values x = values(DType::f32, n() + 1), y = values(DType::f32, n());
  EXPECT_THROW(static_cast<void>(comm_->all_to_all_v(x.buffer(), in, y.buffer(), out)),
               ContractViolation);
}

/// One rank fails while others have operations under way that wait for it. Its communicators wait
/// for nothing, and stay: once it has said why it fails, they end together, so that none of them
/// waits for what another has on the device.
TEST_F(Device, UnwindingEndsWithOperationsUnderWay) {
  const auto begin = std::chrono::steady_clock::now();
  Values x = values(DType::f32, 10), y = values(DType::f32, 10);
  const int next = (me() + 1) % n(), previous = (me() + n() - 1) % n();
  EXPECT_THROW(
      {
        auto first = world().make(Backend::nccl, "fsdp");
        auto second = world().make(Backend::nccl, "pp");
        auto last = world().make(Backend::nccl, "cp");
        second->group_start();
        second->send(x.buffer(), next);  // connects them, which holds the host
        second->recv(y.buffer(), previous);
        second->group_end().wait();
        second->group_start();
        second->recv(y.buffer(), previous);  // which nobody sends
        Request request = second->group_end();
        fail(ExitCode::environment, "out of memory");
      },
      Error);
  EXPECT_TRUE(abort_device_communicators("out of memory", std::chrono::seconds(30)));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
  EXPECT_THAT(all_reduce(*comm_, 10),
              HasSubstr("axis tp cannot be used after its first failure: out of memory"));
}

/// As above 256 ranks: several ranks make ids, and the members meet.
TEST_F(Device, MeetsAtSeveralIds) {
  const auto made = [this](int ranks_per_id) {
    auto host = std::unique_ptr<MpiCommunicator>(
        static_cast<MpiCommunicator*>(world().make(Backend::mpi, "fsdp").release()));
    auto comm = make_nccl_communicator(std::move(host), ranks_per_id);
    Values x = values(DType::f32, 10);
    comm->all_reduce(x.buffer()).wait();
    EXPECT_EQ(x[0], n());
    return comm->host().traffic().calls;
  };
  const std::int64_t calls_for_one_id = made(ranks_per_nccl_id);
  for (const int ranks_per_id : {1, 2, 3}) {
    const int ids = (n() + ranks_per_id - 1) / ranks_per_id;
    EXPECT_EQ(made(ranks_per_id) - calls_for_one_id, ids - 1)
        << ranks_per_id << " ranks for each id";
  }
}

/// An abort that never ends holds nobody for longer than the deadline, and the communicators are
/// not used again.
TEST_F(Device, AnAbortHasADeadline) {
  if (!dlsym(RTLD_DEFAULT, "_ZN7tessera3sim12forget_racesEv")) GTEST_SKIP() << "no simulated GPU";
  setenv("TESSERA_SIM_NCCL_FAIL", "ncclCommAbort:1", 1);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_FALSE(abort_device_communicators("no memory", milliseconds(500)));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
  unsetenv("TESSERA_SIM_NCCL_FAIL");
  EXPECT_THAT(all_reduce(*comm_, 10), HasSubstr("used after its first failure: no memory"));
}

/// A read that waits for no request fails on the simulated GPU, and with it all that the GPU does
/// later: calls that come next say that they are not to blame, and the watchdog tells it, too.
TEST_F(Device, EarlierWorkIsBlamedOnNoLaterCall) {
  void* forget_races = dlsym(RTLD_DEFAULT, "_ZN7tessera3sim12forget_racesEv");
  if (!forget_races) GTEST_SKIP() << "no simulated GPU";
  Values x = values(DType::f32, 10);
  {
    WatchdogReports reports(std::chrono::seconds(60));
    const auto use = [&](std::unique_ptr<Communicator> comm) {
      Request request = comm->all_reduce(x.buffer());
      EXPECT_THROW(static_cast<void>(x[0]), std::runtime_error);
      const std::string blamed =
          "earlier work on this GPU failed: unspecified launch failure (cudaErrorLaunchFailure";
      EXPECT_THAT(error_of([&] { comm->all_reduce(x.buffer()).wait(); }), HasSubstr(blamed));
      EXPECT_THAT(reports.first(), HasSubstr(blamed));
      fail(ExitCode::environment, "leave");
    };
    EXPECT_THROW(use(std::move(comm_)), Error);
    abort_device_communicators("leave", std::chrono::seconds(30));
  }
  reinterpret_cast<void (*)()>(forget_races)();
}

/// The last rank comes 0.3 s late. The host of the others goes on, and the device measures: from
/// before they meet, so that a rank that stands still only waits for longer.
TEST_F(Device, MeasuresWaitsOnItsStreams) {
  if (n() < 2) GTEST_SKIP() << "nobody to wait for";
  EXPECT_EQ(all_reduce(*comm_, 10), "no error");  // connects the ranks
  Values x = values(DType::f32, 10);
  const auto seconds = [&] {
    static_cast<void>(x[0]);  // the device has come so far
    collect_device_waits();
    return comm_->traffic().exposed_seconds;
  };
  const double before = seconds();
  if (last()) {
    meet();
    std::this_thread::sleep_for(milliseconds(300));
  }
  comm_->all_reduce(x.buffer()).wait();
  if (!last()) meet();
  EXPECT_EQ(comm_->traffic().exposed_seconds, before);
  const double after = seconds();
  if (!last()) {
    EXPECT_GE(after - before, 0.29);
  }
  EXPECT_EQ(seconds(), after);
}

/// Two queues entered in another order: the double tells it before any deadlock.
TEST_F(Device, OrderOfTwoCommunicators) {
  if (!on_the_double()) GTEST_SKIP() << "only the double of NCCL finds it";
  if (n() < 2) GTEST_SKIP() << "nobody to disagree with";
  const auto other = world().make(Backend::nccl, "dp");
  for (Communicator* each : {comm_.get(), other.get()})
    EXPECT_EQ(all_reduce(*each, 10), "no error");  // connects its ranks
  WatchdogReports reports(std::chrono::seconds(60));
  Values x = values(DType::f32, 10), y = values(DType::f32, 10);
  static_cast<void>(error_of([&] {
    Request first = (last() ? *other : *comm_).all_reduce(x.buffer());
    Request second = (last() ? *comm_ : *other).all_reduce(y.buffer());
    static_cast<void>(reports.first());
  }));
  EXPECT_THAT(reports.first(), HasSubstr("launch in different orders at ncclAllReduce 2"));
}

}  // namespace
}  // namespace tessera::comm
