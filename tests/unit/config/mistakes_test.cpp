// SPDX-License-Identifier: Apache-2.0
// One hundred seeded mistakes: each ends in one usage error that names its place, and a misspelling
// in the right suggestion.
#include "mistakes.hpp"

#include <gmock/gmock.h>

#include "config_files.hpp"

namespace tessera::config {
namespace {

using test::JobFile;
using testing::HasSubstr;

void expect_caught(const test::Mistake& m) {
  const JobFile file(m.text());
  std::vector<std::string> args{file.path()};
  args.insert(args.end(), m.flags.begin(), m.flags.end());
  SCOPED_TRACE(m.kind + "\n" + m.text() + testing::PrintToString(m.flags));
  const std::string message = test::mistake(args);
  EXPECT_THAT(message, HasSubstr(m.expected));
  const std::string flag = m.blames_flag ? m.flags[0].substr(0, m.flags[0].find('=')) : "";
  EXPECT_THAT(message, HasSubstr((m.blames_flag ? flag : file.path()) + ":"));
  EXPECT_THAT(message, HasSubstr(m.exact ? file.at(static_cast<int>(m.lines.size())) : ""));
}

TEST(Mistakes, OneHundredAreCaught) {
  const auto mistakes = test::hundred_mistakes(20261121);
  ASSERT_EQ(mistakes.size(), 100u);
  for (const test::Mistake& m : mistakes) expect_caught(m);
}

}  // namespace
}  // namespace tessera::config
