// SPDX-License-Identifier: Apache-2.0
#include "tessera/base/atomic_file.hpp"
#include "support/error_of.hpp"
#include "support/temporary_folder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

namespace tessera {
namespace {

using tessera::test::content_of;
using tessera::test::error_of;
using tessera::test::TemporaryFolder;

namespace fs = std::filesystem;
using testing::HasSubstr;

class AtomicFiles : public testing::Test {
 protected:
  TemporaryFolder folder_;
};

TEST_F(AtomicFiles, ReplaceWholeAndLeaveNothingBeside) {
  write_file_atomically(folder_ / "x", "a long text");
  write_file_atomically(folder_ / "x", "short");
  EXPECT_EQ(content_of(folder_ / "x"), "short");
  EXPECT_EQ(folder_.entries(), 1);
}

TEST_F(AtomicFiles, AreNotThereBeforeTheirCommit) {
  {
    AtomicFile file(folder_ / "x");
    file.append("00 lines");
    EXPECT_FALSE(fs::exists(folder_ / "x"));
  }
  EXPECT_EQ(folder_.entries(), 0) << "and one that is given up leaves nothing";
  AtomicFile file(folder_ / "x");
  file.append("00 ");
  file.append("lines");
  file.rewrite_beginning("17");
  file.commit();
  EXPECT_EQ(content_of(folder_ / "x"), "17 lines");
}

TEST_F(AtomicFiles, AFailureLeavesTheOldText) {
  fs::create_directory(folder_ / "x");
  std::ofstream(folder_ / "x/inside") << "kept";
  EXPECT_THAT(
      error_of(ExitCode::environment, [&] { write_file_atomically(folder_ / "x", "text"); }),
      HasSubstr("it is a folder"));
  EXPECT_EQ(content_of(folder_ / "x/inside"), "kept");
  EXPECT_EQ(folder_.entries(), 1) << "and nothing is left beside it";
  EXPECT_THAT(
      error_of(ExitCode::environment, [&] { write_file_atomically(folder_ / "no/x", "text"); }),
      HasSubstr("(No such file or directory); check the path"));
}

}  // namespace
}  // namespace tessera
