// SPDX-License-Identifier: Apache-2.0
#include "tessera/base/atomic_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <iterator>

namespace tessera {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class AtomicFiles : public testing::Test {
 protected:
  AtomicFiles() {
    std::string pattern = (fs::temp_directory_path() / "tessera_atomic_XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~AtomicFiles() override { fs::remove_all(folder_); }

  std::string contents(const fs::path& file) const {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::ptrdiff_t entries() const {
    return std::distance(fs::directory_iterator(folder_), fs::directory_iterator());
  }

  fs::path folder_;
};

TEST_F(AtomicFiles, ReplaceWholeAndLeaveNothingBeside) {
  write_file_atomically(folder_ / "x", "a long text");
  write_file_atomically(folder_ / "x", "short");
  EXPECT_EQ(contents(folder_ / "x"), "short");
  EXPECT_EQ(entries(), 1);
}

TEST_F(AtomicFiles, AreNotThereBeforeTheirCommit) {
  {
    AtomicFile file(folder_ / "x");
    file.append("00 lines");
    EXPECT_FALSE(fs::exists(folder_ / "x"));
  }
  EXPECT_EQ(entries(), 0) << "and one that is given up leaves nothing";
  AtomicFile file(folder_ / "x");
  file.append("00 ");
  file.append("lines");
  file.rewrite_beginning("17");
  file.commit();
  EXPECT_EQ(contents(folder_ / "x"), "17 lines");
}

TEST_F(AtomicFiles, AFailureLeavesTheOldText) {
  fs::create_directory(folder_ / "x");
  std::ofstream(folder_ / "x/inside") << "kept";
  const auto refusal = [](const std::function<void()>& work) -> std::string {
    try {
      work();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::environment);
      return error.what();
    }
    return "accepted";
  };
  EXPECT_THAT(refusal([&] { write_file_atomically(folder_ / "x", "text"); }),
              HasSubstr("it is a folder"));
  EXPECT_EQ(contents(folder_ / "x/inside"), "kept");
  EXPECT_EQ(entries(), 1) << "and nothing is left beside it";
  EXPECT_THAT(refusal([&] { write_file_atomically(folder_ / "no/x", "text"); }),
              HasSubstr("(No such file or directory); check the path"));
}

}  // namespace
}  // namespace tessera
