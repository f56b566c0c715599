// SPDX-License-Identifier: Apache-2.0
#include "tessera/data/tokenizer_record.hpp"

#include <gtest/gtest.h>

namespace tessera::data {
namespace {

TEST(TokenizerRecord, ComparesWhatIsKnown) {
  const std::string one = tokenizer_record(0x1f), two = tokenizer_record(0x2f);
  EXPECT_EQ(one, "000000000000001f");
  EXPECT_EQ(tokenizer_record(0), "");
  EXPECT_EQ(recorded_tokenizer(R"({"step": 1, "tokenizer": "000000000000001f"})"), one);
  for (const char* state : {"", "[]", "{}", R"({"tokenizer": 7})", "{"})
    EXPECT_EQ(recorded_tokenizer(state), "") << state;
  EXPECT_TRUE(other_tokenizer(one, two));
  EXPECT_FALSE(other_tokenizer(one, one) || other_tokenizer("", one) || other_tokenizer(one, ""));
}

}  // namespace
}  // namespace tessera::data
