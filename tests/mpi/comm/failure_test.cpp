// SPDX-License-Identifier: Apache-2.0
// How a rank that fails reaches other nodes, and leaves what it has begun.
#include <gtest/gtest.h>
#include <mpi.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "alarm.hpp"
#include "mpi/comm/mpi_main.hpp"
#include "mpi/comm/typed_values.hpp"
#include "peers.hpp"
#include "tessera/comm/failure.hpp"

namespace tessera::comm {
namespace {

using test::Values;
using test::world;

/// Each rank pretends to be a node; rank 0 asks, and the others have noticed nothing.
TEST(Alarm, ReachesOtherNodes) {
  if (world().size() < 2) GTEST_SKIP() << "nobody to reach";
  constexpr std::int64_t kOver = 1000001;
  constexpr std::chrono::seconds kLongest{60};
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  open_alarm(comm, world().rank());
  const auto deadline = std::chrono::steady_clock::now() + kLongest;
  if (world().rank() == 0) {
    EXPECT_TRUE(raise_alarm([] {}, kLongest / 2));
    Watchdog::heartbeat(kOver);
  } else {
    while (page_of(0)->step != kOver && std::chrono::steady_clock::now() < deadline) {
      answer_alarm([] {});
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  close_alarm();
  world().control().barrier();
  MPI_Comm_free(&comm);
}

/// The peer never sends: who leaves because of an exception does not wait for it.
TEST(Failure, DropsWhatWouldNeverComplete) {
  if (world().size() < 2) GTEST_SKIP() << "nobody to reach";
  const auto comm = world().make(Backend::mpi, "pp");
  Values x(DType::f32, 10);
  const auto leave = [&] {
    comm->group_start();
    comm->recv(x.buffer(), (comm->rank() + 1) % comm->size());
    const Request request = comm->group_end();
    fail(ExitCode::environment, "out of memory");
  };
  EXPECT_THROW(leave(), Error);
  EXPECT_TRUE(has_dropped_transfers());
}

TEST(Failure, OfARankIsKnownOnItsNode) {
  forget_failure();  // of an earlier test
  world().control().barrier();
  if (world().rank() == world().size() - 1) note_failure("out of memory");
  world().control().barrier();
  EXPECT_EQ(failure_on_node(), fmt::format("rank {}: out of memory", world().size() - 1));
  world().control().barrier();
  forget_failure();
  world().control().barrier();
  EXPECT_EQ(failure_on_node(), "");
}

}  // namespace
}  // namespace tessera::comm
