// SPDX-License-Identifier: Apache-2.0
// Where a text ends, by the files next to a tokenizer.
#include "tessera/hf/assets.hpp"

#include <gmock/gmock.h>

#include "support/temporary_folder.hpp"

namespace tessera::hf {
namespace {

using testing::ElementsAre;

TEST(EndIds, AreThoseOfAllFilesNextToTheTokenizer) {
  const test::TemporaryFolder folder;
  const data::Tokenizer tokenizer = data::Tokenizer::load(TESSERA_TEST_DATA "/hf_tiny");
  const auto own = tokenizer.eos_id();
  ASSERT_TRUE(own);
  EXPECT_THAT(end_ids({folder.path()}, tokenizer), ElementsAre(*own));
  folder.file("config.json", R"({"eos_token_id": 7})");
  folder.file("generation_config.json", R"({"eos_token_id": [8, 9, -1, "x"]})");
  EXPECT_THAT(end_ids({folder.path()}, tokenizer), ElementsAre(*own, 8, 9, 7));
  EXPECT_THAT(end_ids({folder / "tokenizer.json"}, tokenizer), ElementsAre(*own, 8, 9, 7));
  folder.file("config.json", "[]");
  EXPECT_THAT(end_ids({folder.path()}, tokenizer), ElementsAre(*own, 8, 9));
}

}  // namespace
}  // namespace tessera::hf
