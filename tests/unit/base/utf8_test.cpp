// SPDX-License-Identifier: Apache-2.0
// Text of any bytes as whole characters.
#include "tessera/base/utf8.hpp"

#include <gtest/gtest.h>

namespace tessera {
namespace {

TEST(Utf8, CodesThatAreNoCharactersAreReplaced) {
  for (const char32_t code : {0xD800u, 0xDFFFu, 0x110000u}) {
    std::string text;
    append_utf8(text, code);
    EXPECT_EQ(text, "\xEF\xBF\xBD");
  }
}

/// As Rust's from_utf8_lossy, which Hugging Face's tokenizers use, for beginnings of characters.
TEST(Utf8, ReplacesWhatIsNoCharacter) {
  EXPECT_EQ(with_whole_characters(""), "");
  EXPECT_EQ(with_whole_characters("a caf\u00e9 \U0001F600"), "a caf\u00e9 \U0001F600");
  EXPECT_EQ(with_whole_characters("caf\xc3"), "caf\ufffd");
  EXPECT_EQ(with_whole_characters("\xe2\x82"), "\ufffd");
  EXPECT_EQ(with_whole_characters("\xf0\x9f\x98z"), "\ufffdz");
  EXPECT_EQ(with_whole_characters("\xa9\xa9 \xff"), "\ufffd\ufffd \ufffd");
  EXPECT_EQ(with_whole_characters("\xc3\xc3\xa9"), "\ufffd\u00e9");
}

}  // namespace
}  // namespace tessera
