// SPDX-License-Identifier: Apache-2.0
// main() of a test program that runs on several ranks: one World, and only rank 0 tells what
// passed.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "device_values.hpp"
#include "mpi/comm/test_deadline.hpp"
#include "tessera/base/error.hpp"
#include "tessera/comm/device.hpp"
#include "tessera/comm/failure.hpp"
#include "tessera/comm/world.hpp"

namespace tessera::test {

inline comm::World*& world_slot() {
  static comm::World* world = nullptr;
  return world;
}
inline comm::World& world() { return *world_slot(); }

/// What communicators are to move in this run.
inline comm::Memory test_memory() {
  return on_device() ? comm::Memory::device : comm::Memory::host;
}

/// Says which rank a failure happened on. (While a result is reported GoogleTest holds a lock: it
/// must not be asked then.)
class FailurePrinter final : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo& test) override {
    name_ = std::string(test.test_suite_name()) + "." + test.name();
  }
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (!result.failed()) return;
    std::fprintf(stderr, "rank %d: %s: %s:%d: %s\n", world().rank(), name_.c_str(),
                 result.file_name() ? result.file_name() : "", result.line_number(),
                 result.message());
  }
  std::string name_;
};

/// A rank that fails must not leave the others waiting, neither between tests nor in operations on
/// devices that wait for it.
class Barrier final : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo&) override { world().control().barrier(); }
  void OnTestEnd(const testing::TestInfo& test) override {
    if (on_device() && test.result()->Failed())
      comm::abort_device_communicators("a test has failed", std::chrono::seconds(5));
  }
};

/// With `longest_call` a watchdog ends the ranks where a call on a device has failed or takes
/// longer: nothing else would.
inline int run_ranks(int argc, char** argv, std::optional<std::chrono::minutes> longest_call = {}) {
  testing::InitGoogleTest(&argc, argv);
  comm::World world(&argc, &argv);
  world_slot() = &world;
  if (on_device()) comm::use_device(comm::device_facts(world.local_rank(), true).index);
  std::optional<comm::Watchdog> watchdog;
  if (on_device() && longest_call)
    watchdog.emplace(*longest_call, world.rank(), [&world](const Error& report) {
      std::fprintf(stderr, "%s\n", report.what());
      world.abort(7);
    });
  auto& listeners = testing::UnitTest::GetInstance()->listeners();
  if (world.rank() != 0) delete listeners.Release(listeners.default_result_printer());
  if (world.rank() != 0) listeners.Append(new FailurePrinter);
  listeners.Append(new Barrier);
  if (TestDeadline::wanted()) listeners.Append(new TestDeadline(world.rank()));
  const int failed = RUN_ALL_TESTS();
  return comm::all_reduce_scalar(world.control(), static_cast<std::int64_t>(failed)) ? 1 : 0;
}

}  // namespace tessera::test
