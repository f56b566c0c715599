// SPDX-License-Identifier: Apache-2.0
// What one rank cannot do, all ranks learn in the same words.
#include "tessera/comm/agreement.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <new>

#include "mpi/comm/mpi_main.hpp"
#include "tessera/base/error.hpp"

namespace tessera::comm {
namespace {

using test::world;

struct Outcome {
  ExitCode code = ExitCode::done;
  std::string text;
};

Outcome outcome_of(const std::function<std::string()>& work) {
  try {
    return {ExitCode::done, work()};
  } catch (const Error& error) {
    return {error.code(), error.what()};
  }
}

Outcome of_all(const std::function<void()>& work) {
  return outcome_of([&] { return on_all_ranks(world().control(), work), std::string(); });
}

TEST(Agreement, NothingHappensIfNobodyFails) {
  EXPECT_EQ(of_all([] {}).code, ExitCode::done);
  const std::string text(100'000, 'x');
  EXPECT_EQ(on_rank_zero(world().control(), [&] { return text; }), text);
}

TEST(Agreement, TheLowestRankThatFailedIsQuoted) {
  const int last = world().size() - 1;
  const Outcome outcome = of_all([&] {
    if (world().rank() >= last / 2)
      fail(ExitCode::data, "file {} is missing; name one", world().rank());
  });
  EXPECT_EQ(outcome.code, ExitCode::data);
  const std::string text = fmt::format("file {} is missing; name one", last / 2);
  EXPECT_EQ(outcome.text, last / 2 == 0 ? text : fmt::format("rank {}: {}", last / 2, text))
      << "without a rank if all failed";
}

TEST(Agreement, OtherExceptionsAreOfTheEnvironment) {
  EXPECT_EQ(of_all([] { std::filesystem::create_directory("/proc/none/x"); }).code,
            ExitCode::environment);
  const Outcome memory = of_all([] { throw std::bad_alloc(); });
  EXPECT_EQ(memory.code, ExitCode::environment);
  EXPECT_EQ(memory.text.find("not enough memory ("), 0u) << memory.text;
  EXPECT_EQ(of_all([] { throw std::logic_error("a bug"); }).text, "a bug");
}

TEST(Agreement, RankZeroFailsForAll) {
  const Outcome outcome = outcome_of([] {
    return on_rank_zero(world().control(), []() -> std::string { fail(ExitCode::usage, "no"); });
  });
  EXPECT_EQ(outcome.code, ExitCode::usage);
  EXPECT_EQ(outcome.text, "no");
}

}  // namespace
}  // namespace tessera::comm
