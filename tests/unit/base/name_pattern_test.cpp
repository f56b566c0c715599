// SPDX-License-Identifier: Apache-2.0
#include "tessera/base/name_pattern.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_of.hpp"
#include "tessera/base/error.hpp"

namespace tessera {
namespace {

using tessera::test::error_of;
using testing::HasSubstr;

const std::vector<std::string> kNames{"tok_embeddings", "layers.0", "layers.1"};

std::string refusal(const std::string& pattern) {
  return error_of(ExitCode::usage, [&] { require_matches(pattern, kNames, "key"); });
}

TEST(NamePattern, IsFoundAnywhereInTheName) {
  EXPECT_TRUE(matches("embed", "tok_embeddings"));
  EXPECT_TRUE(matches("layers\\.[0-1]$", "layers.1"));
  EXPECT_FALSE(matches("^embed", "tok_embeddings"));
}

TEST(NamePattern, MustMatchSomething) {
  EXPECT_NO_THROW(require_matches("^layers", kNames, "key"));
  EXPECT_THAT(refusal("^layer\\.0$"), HasSubstr("key: \"^layer\\.0$\" matches nothing"));
  EXPECT_THAT(refusal("^layer\\.0$"), HasSubstr("did you mean 'layers.0'"));
  EXPECT_THAT(refusal("("), HasSubstr("not a regular expression"));
}

}  // namespace
}  // namespace tessera
