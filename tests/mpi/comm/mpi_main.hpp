// main() of a test program that runs on several ranks: one World, and only rank 0 tells what passed.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <memory>

#include "tessera/base/error.hpp"
#include "tessera/comm/world.hpp"

namespace tessera::test {

inline comm::World*& world_slot() {
  static comm::World* world = nullptr;
  return world;
}
inline comm::World& world() { return *world_slot(); }

/// Says which rank a failure happened on.
class FailurePrinter final : public testing::EmptyTestEventListener {
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (!result.failed()) return;
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    std::fprintf(stderr, "rank %d: %s.%s: %s:%d: %s\n", world().rank(), test ? test->test_suite_name() : "", test ? test->name() : "",
                 result.file_name() ? result.file_name() : "", result.line_number(), result.message());
  }
};

/// A rank that fails must not leave the others waiting between tests.
class Barrier final : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo&) override { world().control().barrier(); }
};

inline int run_ranks(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  comm::World world(&argc, &argv);
  world_slot() = &world;
  auto& listeners = testing::UnitTest::GetInstance()->listeners();
  if (world.rank() != 0) delete listeners.Release(listeners.default_result_printer());
  if (world.rank() != 0) listeners.Append(new FailurePrinter);
  listeners.Append(new Barrier);
  const int failed = RUN_ALL_TESTS();
  return comm::all_reduce_scalar(world.control(), static_cast<std::int64_t>(failed)) ? 1 : 0;
}

}  // namespace tessera::test
