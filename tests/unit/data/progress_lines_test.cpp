// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <sstream>
#include <thread>

#include "tessera/data/progress.hpp"

namespace tessera::data {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

std::string lines_of(milliseconds interval, milliseconds lasts, std::uint64_t done) {
  std::ostringstream out;
  {
    ProgressLines lines(out, "reading a.txt", interval);
    if (done > 0) lines.show(done, 1000);
    std::this_thread::sleep_for(lasts);
  }
  return out.str();
}

TEST(ProgressLines, SayHowMuchIsDoneAndLeft) {
  const std::string text = lines_of(milliseconds(20), milliseconds(400), 250);
  EXPECT_THAT(text, HasSubstr("reading a.txt: 25 %, "));
  EXPECT_THAT(text, HasSubstr("iB/s, "));
  EXPECT_THAT(text, HasSubstr(" s left\n"));
}

/// A document of a gigabyte is done all at once, at the end.
TEST(ProgressLines, GoOnWhileNothingIsDone) {
  EXPECT_THAT(lines_of(milliseconds(20), milliseconds(400), 0),
              HasSubstr("reading a.txt: 0 s so far\n"));
}

TEST(ProgressLines, ShortWorkHasNone) {
  EXPECT_EQ(lines_of(std::chrono::minutes(10), milliseconds(1), 250), "");
}

}  // namespace
}  // namespace tessera::data
