// SPDX-License-Identifier: Apache-2.0
#include "attention_change.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tessera/model_spec/families.hpp"

namespace tessera::train {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

std::string change(const model::DecoderShape& shape, std::int64_t then, std::int64_t now) {
  return attention_change(shape, now, "[training]\nseq_len = " + std::to_string(then) + "\n");
}

TEST(AttentionChange, IsToldWhereYarnBeginsOrEnds) {
  const model::DecoderShape shape = model::decoder_flavor("deepseek_v3", "16B");
  EXPECT_THAT(change(shape, 4096, 8192),
              HasSubstr("training.seq_len is 8192, and was 4096 in the checkpoint: YaRN now "
                        "applies, as it does to sequences of more than 4096 positions."));
  EXPECT_THAT(change(shape, 8192, 2048), HasSubstr("YaRN no longer applies"));
}

TEST(AttentionChange, IsNothingOnOneSideOfTheLength) {
  const model::DecoderShape shape = model::decoder_flavor("deepseek_v3", "16B");
  EXPECT_THAT(change(shape, 2048, 4096), IsEmpty());
  EXPECT_THAT(change(shape, 4097, 16384), IsEmpty());
  EXPECT_THAT(attention_change(shape, 8192, ""), IsEmpty()) << "the record does not say";
  EXPECT_THAT(attention_change(shape, 8192, "[training]\nseq_len = x\n"), IsEmpty());
}

TEST(AttentionChange, IsNothingForOtherModels) {
  EXPECT_THAT(change(model::decoder_flavor("llama3", "8B"), 2048, 131072), IsEmpty());
  EXPECT_THAT(change(model::decoder_flavor("gpt_oss", "20b"), 2048, 131072), IsEmpty())
      << "YaRN always applies";
}

}  // namespace
}  // namespace tessera::train
