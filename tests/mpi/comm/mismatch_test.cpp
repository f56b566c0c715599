// SPDX-License-Identifier: Apache-2.0
// What would hang or corrupt a GPU cluster must fail here within seconds, and say who called what.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <numeric>
#include <thread>

#include "mpi/comm/mpi_main.hpp"
#include "mpi/comm/typed_values.hpp"
#include "support/error_of.hpp"
#include "tessera/comm/failure.hpp"

namespace tessera::comm {
namespace {

using test::Values;
using test::world;
using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;

class Mismatch : public testing::Test {
 protected:
  void SetUp() override {
    begin_ = std::chrono::steady_clock::now();
    if (test::on_device()) GTEST_SKIP() << "strict rules are those of host memory";
    if (n() < 2) GTEST_SKIP() << "nobody to disagree with";
    be_impatient("120");
    forget_failure();
    await_all();
    comm_ = world().make(Backend::strict, "tp");
  }
  void TearDown() override {
    unsetenv("TESSERA_STRICT_TIMEOUT_SECONDS");
    EXPECT_LT(std::chrono::steady_clock::now() - begin_,
              std::chrono::seconds(90));  // no deadline but an impatient one
  }
  /// Before one of them looks at whether another has failed.
  static void await_all() { world().control().barrier(); }
  /// For the cases that only a deadline finds.
  static void be_impatient(const char* seconds = "2") {
    setenv("TESSERA_STRICT_TIMEOUT_SECONDS", seconds, 1);
  }
  int me() const { return world().rank(); }
  int n() const { return world().size(); }
  bool last() const { return me() == n() - 1; }

  /// Message of the communication error that `call` ends with; "" if there is none.
  template <class Function>
  static std::string error_of(Function call) {
    return test::error_if_any(ExitCode::communication, call);
  }
  std::string all_reduce(Communicator& comm, DType dtype, std::int64_t count, Op op = Op::sum) {
    Values x(dtype, count, 1);
    return error_of([&] { comm.all_reduce(x.buffer(), op).wait(); });
  }

  std::unique_ptr<Communicator> comm_;
  std::chrono::steady_clock::time_point begin_;
};

TEST_F(Mismatch, Count) {
  EXPECT_THAT(
      all_reduce(*comm_, DType::f32, last() ? 11 : 10),
      AllOf(HasSubstr("the ranks of axis tp disagree"),
            HasSubstr("all_reduce(sum, f32, 10 elements), call 1"),
            HasSubstr(fmt::format("rank {}: all_reduce(sum, f32, 11 elements), call 1", n() - 1))));
}

TEST_F(Mismatch, DTypeAndOperation) {
  EXPECT_THAT(all_reduce(*comm_, last() ? DType::bf16 : DType::f32, 10), HasSubstr("bf16"));
  comm_ = world().make(Backend::strict, "tp");
  EXPECT_THAT(all_reduce(*comm_, DType::f32, 10, last() ? Op::max : Op::sum),
              HasSubstr("all_reduce(max"));
}

TEST_F(Mismatch, CallAndRoot) {
  Values x(DType::f32, 10), y(DType::f32, 10 * n());
  EXPECT_THAT(error_of([&] {
                if (last()) return comm_->barrier();
                comm_->all_gather(x.buffer(), y.buffer()).wait();
              }),
              AllOf(HasSubstr("barrier"), HasSubstr("all_gather")));
  comm_ = world().make(Backend::strict, "tp");
  EXPECT_THAT(error_of([&] { comm_->broadcast(x.buffer(), last() ? 1 : 0).wait(); }),
              AllOf(HasSubstr("root 0"), HasSubstr("root 1")));
}

TEST_F(Mismatch, AFailedCommunicatorStaysFailed) {
  EXPECT_THAT(all_reduce(*comm_, DType::f32, last() ? 11 : 10), HasSubstr("disagree"));
  EXPECT_THAT(all_reduce(*comm_, DType::f32, 10),
              HasSubstr("cannot be used after its first failure"));
}

TEST_F(Mismatch, UnevenCountsOfAllToAll) {
  be_impatient();
  std::vector<std::int64_t> in(static_cast<std::size_t>(n()), 3), out = in;
  if (me() == 0) in.back() = 4;
  const auto sum = [](const auto& v) {
    return std::accumulate(v.begin(), v.end(), std::int64_t{0});
  };
  Values x(DType::f32, sum(in)), y(DType::f32, sum(out));
  const std::string message =
      error_of([&] { comm_->all_to_all_v(x.buffer(), in, y.buffer(), out).wait(); });
  if (me() == 0 || last()) {
    EXPECT_THAT(message, AllOf(HasSubstr("disagree"), HasSubstr("(4 to and")));
  } else {  // sees no wrong in its own pairs, but its peers are gone
    EXPECT_THAT(message, HasSubstr("another rank has failed"));
  }
}

/// A deadlock on a GPU: two queues entered in another order. The message tells what the missing
/// rank is blocked in.
TEST_F(Mismatch, OrderOfTwoCommunicators) {
  be_impatient();
  auto other = world().make(Backend::strict, "dp");
  Communicator& first = last() ? *other : *comm_;
  const std::string message = all_reduce(first, DType::f32, 10);
  EXPECT_THAT(message, AllOf(HasSubstr("waited 2 s for"), HasSubstr("one global order")));
  // Or another rank began much earlier and has given up.
  if (!last()) {
    EXPECT_THAT(message, AnyOf(HasSubstr(fmt::format("rank {} blocked in dp", n() - 1)),
                               HasSubstr("has failed")));
  }
}

TEST_F(Mismatch, AMissingRank) {
  be_impatient();
  if (last()) return world().control().barrier();
  EXPECT_THAT(error_of([&] { comm_->barrier(); }),
              AllOf(HasSubstr(fmt::format("s for world rank {},", n() - 1)),
                    HasSubstr("blocked in world")));
  world().control().barrier();
}

TEST_F(Mismatch, SendWithoutReceive) {
  be_impatient();
  Values x(DType::f32, 10);
  if (me() == 0) {
    comm_->group_start();
    comm_->send(x.buffer(), 1);
    EXPECT_THAT(error_of([&] { comm_->group_end().wait(); }),
                HasSubstr("group of 1 transfers, group 1 on axis tp"));
  }
}

/// Each sends, waits, and then wants to receive: mailboxes would hide it, NCCL has none.
TEST_F(Mismatch, SendsThatNeedABuffer) {
  if (me() > 1) return;
  Values x(DType::f32, 10), y(DType::f32, 10);
  comm_->group_start();
  comm_->send(x.buffer(), 1 - me());
  EXPECT_THAT(error_of([&] { comm_->group_end().wait(); }),
              AllOf(HasSubstr("disagree"), HasSubstr("from it: nothing")));
}

TEST_F(Mismatch, CompositionOfGroups) {
  if (me() > 1) return;
  Values x(DType::f32, 10), y(DType::f32, 10);
  comm_->group_start();
  comm_->send(x.buffer(), 1 - me());
  if (me() == 0) comm_->recv(y.buffer(), 1);  // the other receives in a group of its own
  EXPECT_THAT(error_of([&] { comm_->group_end().wait(); }), HasSubstr("disagree"));
}

TEST_F(Mismatch, CountInAGroup) {
  if (me() > 1) return;
  Values x(DType::f32, 10 + me());
  comm_->group_start();
  if (me() == 0) comm_->send(x.buffer(), 1);
  if (me() == 1) comm_->recv(x.buffer(), 0);
  EXPECT_THAT(error_of([&] { comm_->group_end().wait(); }),
              AllOf(HasSubstr("10 x f32"), HasSubstr("11 x f32")));
}

TEST_F(Mismatch, GroupAgainstCollective) {
  be_impatient();
  Values x(DType::f32, 10);
  if (me() == 0) {
    comm_->group_start();
    comm_->send(x.buffer(), 1);
    EXPECT_THAT(error_of([&] { comm_->group_end().wait(); }),
                AllOf(HasSubstr("disagree"), HasSubstr("barrier")));
  } else {
    EXPECT_NE(error_of([&] { comm_->barrier(); }), "");
  }
}

TEST_F(Mismatch, CheckedOverMpiOnRequest) {
  comm_ = world().make(Backend::mpi, "tp");
  set_check_collectives(true);
  EXPECT_EQ(all_reduce(*comm_, DType::f32, 10), "");
  EXPECT_THAT(all_reduce(*comm_, DType::f32, last() ? 11 : 10),
              HasSubstr("the ranks of axis tp disagree"));
  comm_ = world().make(Backend::mpi, "pp");
  Values x(DType::f32, me() == 0 ? 10 : 11);
  comm_->group_start();
  if (me() == 0) comm_->send(x.buffer(), 1);
  if (me() == 1) comm_->recv(x.buffer(), 0);
  const std::string message = error_of([&] { comm_->group_end().wait(); });
  if (me() < 2) {
    EXPECT_THAT(message, AllOf(HasSubstr("the ranks of axis pp disagree"),
                               HasSubstr("world rank 1: group of 1")));
  }
  set_check_collectives(false);
}

/// Rank 0 waits for rank 1, which is somewhere else: the message follows the chain to the rank that
/// everybody waits for.
TEST_F(Mismatch, TheRankThatAllWaitForIsNamed) {
  if (n() < 3) return;
  be_impatient(me() == 0 ? "1.5" : "4");  // so that rank 0 is the first to give up
  auto first = comm_->split(me() < 2, me(), "first"),
       second = comm_->split(me() > 0, me(), "second");
  if (me() == 0) {
    EXPECT_THAT(error_of([&] { first->barrier(); }),
                AllOf(HasSubstr("rank 1 blocked in second"), HasSubstr("for rank 2; rank 2 ")));
  } else if (me() == 1 || me() > 2) {
    EXPECT_NE(error_of([&] { second->barrier(); }), "");
  } else {
    std::this_thread::sleep_for(std::chrono::seconds(3));
  }
  world().control().barrier();
}

/// Without the check MPI itself still notices sizes that differ, and the error names call, rank and
/// axis.
TEST_F(Mismatch, SizesAreComparedOverMpi) {
  if (me() > 1) return;
  comm_ = nullptr;
  Values x(DType::f32, me() == 0 ? 10 : 11);
  Communicator& control = world().control();
  control.group_start();
  if (me() == 0) control.send(x.buffer(), 1);
  if (me() == 1) control.recv(x.buffer(), 0);
  const std::string message = error_of([&] { control.group_end().wait(); });
  if (me() == 1) {
    EXPECT_THAT(message, AllOf(HasSubstr("rank 0 sent 40 bytes where rank 1 expects 44"),
                               HasSubstr("axis world")));
  }
}

}  // namespace
}  // namespace tessera::comm
