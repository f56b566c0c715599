// SPDX-License-Identifier: Apache-2.0
#include "tessera/hf/config.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_of.hpp"
#include "support/golden_families.hpp"
#include "support/temporary_folder.hpp"
#include "tessera/base/error.hpp"
#include "tessera/model_spec/families.hpp"
#include "tessera/model_spec/properties.hpp"

namespace tessera::hf {
namespace {

using tessera::test::error_if_any;
using tessera::test::put;
using tessera::test::TemporaryFolder;
using testing::HasSubstr;

class Config : public testing::Test {
 protected:
  std::filesystem::path file(const std::string& text) {
    put(folder_ / "config.json", text);
    return folder_ / "config.json";
  }
  std::string refusal(const std::string& text) {
    return error_if_any(ExitCode::usage, [&] { read_config(file(text)); });
  }
  TemporaryFolder folder_;
};

TEST_F(Config, WrittenAndReadAgainIsTheSame) {
  const std::string families = std::string(TESSERA_TEST_DATA) + "/families/";
  for (const std::string& family : tessera::test::golden_families())
    for (const char* spelling : {"config.json", "config.v4.json"}) {
      const model::DecoderShape shape =
          read_config(std::filesystem::path(families) / family / spelling);
      const std::string text = config_text(shape, DType::bf16);
      EXPECT_THAT(text, HasSubstr(R"("torch_dtype": "bfloat16")"));
      EXPECT_EQ(config_text(read_config(file(text)), DType::bf16), text) << family;
    }
}

/// An export starts another run without a word.
TEST_F(Config, HasThePropertiesOfTheModel) {
  for (const char* family : {"llama3", "qwen3", "mixtral", "gpt_oss"})
    for (const std::string& flavor : model::flavors_of(family)) {
      const model::DecoderShape shape = model::decoder_flavor(family, flavor);
      const auto read = model::properties_of(read_config(file(config_text(shape, DType::bf16))));
      EXPECT_EQ(model::differences(read, model::properties_of(shape)), "") << family << flavor;
      EXPECT_EQ(read.size(), model::properties_of(shape).size());
    }
  const model::DecoderShape deepseek = model::decoder_flavor("deepseek_v3", "671B");
  EXPECT_EQ(model::differences(
                model::properties_of(read_config(file(config_text(deepseek, DType::bf16)))),
                model::properties_of(deepseek)),
            "");
}

TEST_F(Config, KeepsThePositionsOfTheModel) {
  const std::string text = R"({"model_type": "llama", "max_position_embeddings": 4096})";
  EXPECT_THAT(config_text(read_config(file(text)), DType::bf16),
              HasSubstr(R"("max_position_embeddings": 4096)"));
}

TEST_F(Config, WhatIsAbsentOrNullTakesTheDefault) {
  const model::DecoderShape shape = read_config(file(
      R"({"model_type": "llama", "hidden_size": 64.0, "num_attention_heads": 4, "vocab_size": null})"));
  EXPECT_EQ(shape.dim, 64);
  EXPECT_EQ(shape.head_dim, 16);
  EXPECT_EQ(shape.kv_heads, 4);
  EXPECT_EQ(shape.vocab, 32000);
}

TEST_F(Config, ArchitecturesNameTheModelWhereItsTypeIsAbsent) {
  EXPECT_EQ(read_config(file(R"({"architectures": ["Mine", "Qwen3ForCausalLM"]})")).family,
            model::Family::qwen3);
  EXPECT_THAT(refusal(R"({"hidden_size": 64})"),
              HasSubstr("config.json, model_type: it is missing"));
  EXPECT_THAT(refusal(R"({"architectures": ["Mine"]})"), HasSubstr("model_type: it is missing"));
}

TEST_F(Config, NumbersHaveBounds) {
  for (const char* key : {"rms_norm_eps", "rope_theta"})
    for (const char* value : {"0", "-1"})
      EXPECT_THAT(refusal(fmt::format(R"({{"model_type": "llama", "{}": {}}})", key, value)),
                  HasSubstr(fmt::format("config.json, {}: {} is not above 0", key, value)));
  EXPECT_THAT(refusal(R"({"model_type": "deepseek_v3", "qk_rope_head_dim": 7})"),
              HasSubstr("qk_rope_head_dim 7 must be even"));
  EXPECT_THAT(refusal(R"({"model_type": "gpt_oss", "swiglu_limit": -1})"),
              HasSubstr("swiglu_limit: -1 is not above 0"));
}

TEST_F(Config, WhatTesseraLacksIsRefused) {
  EXPECT_THAT(refusal(R"({"model_type": "llama", "attention_dropout": 0.1})"),
              HasSubstr("attention_dropout: Tessera adds no noise"));
  EXPECT_THAT(refusal(R"({"model_type": "qwen3", "layer_types": ["sliding_attention"]})"),
              HasSubstr("Qwen3 has full attention alone"));
}

TEST_F(Config, MistakesAreNamedWithTheirPlace) {
  EXPECT_THAT(refusal("[]"), HasSubstr("config.json: an object is needed here, not array"));
  EXPECT_THAT(refusal("{"), HasSubstr("not valid JSON"));
  EXPECT_THAT(refusal(R"({"model_type": "llama", "vocab_size": 1, "vocab_size": 2})"),
              HasSubstr("occurs twice"));
  EXPECT_THAT(refusal(R"({"model_type": "llama", "hidden_size": "64"})"),
              HasSubstr("config.json, hidden_size: a number is needed here, not \"64\""));
  EXPECT_THAT(refusal(R"({"model_type": "llama", "hidden_size": 0})"),
              HasSubstr("0 is not a whole number from 1"));
  EXPECT_THAT(refusal(R"({"model_type": "llama", "hidden_size": 64.5})"),
              HasSubstr("64.5 is not a whole number"));
  EXPECT_THAT(
      refusal(R"({"model_type": "llama", "rope_scaling": {"rope_type": "yarn", "factor": "x"}})"),
      HasSubstr("rope_scaling.factor: a number"));
  EXPECT_THAT(refusal(R"({"model_type": "lama"})"), HasSubstr("did you mean 'llama'"));
  EXPECT_THAT(refusal(R"({"model_type": "llama", "mlp_bias": true})"),
              HasSubstr("mlp_bias: true is not supported for this kind of model"));
}

}  // namespace
}  // namespace tessera::hf
