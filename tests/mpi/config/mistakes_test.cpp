// SPDX-License-Identifier: Apache-2.0
// A mistake in the configuration ends all ranks alike, before any of them waits for another.
#include <gtest/gtest.h>

#include "mpi/comm/mpi_main.hpp"
#include "tessera/comm/agreement.hpp"
#include "unit/config/config_files.hpp"
#include "unit/config/mistakes.hpp"

namespace tessera::config {
namespace {

TEST(MistakesOnRanks, OneHundredEndAllRanksAlike) {
  comm::Communicator& control = tessera::test::world().control();
  for (const test::Mistake& m : test::hundred_mistakes(7)) {
    const test::JobFile file(m.text());
    std::vector<std::string> args{file.path()};
    args.insert(args.end(), m.flags.begin(), m.flags.end());
    std::string message;
    try {
      comm::on_rank_zero(control, [&] { return resolve(args).serialize(); });
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      message = error.what();
    }
    const auto messages = comm::all_gather_strings(control, message);
    EXPECT_FALSE(message.empty()) << m.kind << "\n" << m.text();
    EXPECT_EQ(messages, std::vector<std::string>(messages.size(), messages[0]));
  }
}

}  // namespace
}  // namespace tessera::config
