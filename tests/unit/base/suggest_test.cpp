// SPDX-License-Identifier: Apache-2.0
#include "tessera/base/suggest.hpp"

#include <gtest/gtest.h>

namespace tessera {
namespace {

TEST(Suggest, EditDistance) {
  EXPECT_EQ(edit_distance("steps", "steps"), 0u);
  EXPECT_EQ(edit_distance("stpes", "steps"), 1u);
  EXPECT_EQ(edit_distance("seq-len", "seq_len"), 0u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
}

TEST(Suggest, TheNearestWordOrItsLongForm) {
  EXPECT_EQ(closest("bf16", {"float32", "bfloat16"}), "bfloat16");
  EXPECT_EQ(closest("zzzzzz", {"float32", "bfloat16"}), std::nullopt);
  EXPECT_EQ(closest("parallel", {"tensor_parallel", "seed"}), "tensor_parallel");
  EXPECT_EQ(closest(std::string(100000, 'x'), {"seed"}), std::nullopt);
  EXPECT_EQ(did_you_mean("sead", {"seed"}), "; did you mean 'seed'?");
}

}  // namespace
}  // namespace tessera
