// SPDX-License-Identifier: Apache-2.0
// Where a text ends, by the files next to a tokenizer.
#include "tessera/hf/assets.hpp"

#include <gmock/gmock.h>

#include "support/temporary_folder.hpp"

namespace tessera::hf {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(EndIds, AreThoseOfAllFilesNextToTheTokenizer) {
  const test::TemporaryFolder folder;
  const data::Tokenizer tokenizer = data::Tokenizer::load(TESSERA_TEST_DATA "/hf_tiny");
  const auto own = tokenizer.eos_id();
  ASSERT_TRUE(own);
  EXPECT_THAT(end_ids({folder.path()}, tokenizer), ElementsAre(*own));
  folder.file("config.json", R"({"eos_token_id": 7})");
  folder.file("generation_config.json", R"({"eos_token_id": [8, 9]})");
  EXPECT_THAT(end_ids({folder.path()}, tokenizer), ElementsAre(*own, 8, 9, 7));
  EXPECT_THAT(end_ids({folder / "tokenizer.json"}, tokenizer), ElementsAre(*own, 8, 9, 7));
}

TEST(EndIds, ThatAreLostCauseAWarning) {
  const test::TemporaryFolder folder;
  const data::Tokenizer tokenizer = data::Tokenizer::load(TESSERA_TEST_DATA "/hf_tiny");
  const auto warnings = [&] {
    testing::internal::CaptureStderr();
    EXPECT_THAT(end_ids({folder.path(), folder / "config.json", ""}, tokenizer),
                ElementsAre(*tokenizer.eos_id(), 8));
    return testing::internal::GetCapturedStderr();
  };
  folder.file("config.json", R"({"eos_token_id": null})");
  folder.file("generation_config.json", R"({"eos_token_id": 8})");
  EXPECT_EQ(warnings(), "");
  folder.file("config.json", "{");
  const std::string damaged =
      (folder / "config.json").string() + " holds no JSON object: text does not end at its eos";
  const std::string found = warnings();
  EXPECT_THAT(found, HasSubstr(damaged));
  EXPECT_EQ(found.find(damaged), found.rfind(damaged)) << "once";
  folder.file("config.json", R"({"model_type": "llama"})");
  folder.file("generation_config.json", R"({"eos_token_id": [8, "9", -1]})");
  EXPECT_THAT(warnings(),
              AllOf(HasSubstr("generation_config.json, eos_token_id: \"9\" is no token id"),
                    HasSubstr("eos_token_id: -1 is no token id")));
}

}  // namespace
}  // namespace tessera::hf
