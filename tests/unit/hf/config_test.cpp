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

TEST_F(Config, SaysWhetherTheModelHasYarn) {
  const auto written_and_read = [&](const model::DecoderShape& shape) {
    return read_config(file(config_text(shape, DType::bf16)));
  };
  model::DecoderShape gpt_oss = model::decoder_flavor("gpt_oss", "20b");
  EXPECT_TRUE(written_and_read(gpt_oss).yarn);
  gpt_oss.yarn.reset();
  EXPECT_THAT(config_text(gpt_oss, DType::bf16), HasSubstr(R"("rope_type": "default")"));
  EXPECT_FALSE(written_and_read(gpt_oss).yarn);
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

TEST_F(Config, NullHeadsFollowFromTheOthers) {
  const auto shape_of = [&](const char* type, const std::string& more) {
    return read_config(file(fmt::format(
        R"({{"model_type": "{}", "hidden_size": 96, "num_attention_heads": 8{}}})", type, more)));
  };
  const std::string null = R"(, "num_key_value_heads": null, "head_dim": null)";
  for (const char* type : {"llama", "qwen3", "qwen3_moe", "mixtral", "gpt_oss"}) {
    EXPECT_EQ(shape_of(type, null).kv_heads, 8) << type;
    EXPECT_EQ(shape_of(type, null).head_dim, 12) << type;
  }
  EXPECT_EQ(shape_of("gpt_oss", "").head_dim, 64);
  EXPECT_EQ(shape_of("qwen3_moe", "").kv_heads, 4);
  EXPECT_EQ(shape_of("qwen3", R"(, "num_key_value_heads": 2)").head_dim, 128);
  // DeepSeek-V3's follows from its latents.
  const model::DecoderShape latent = read_config(file(
      R"({"model_type": "deepseek_v3", "hidden_size": 36, "num_attention_heads": 4)" + null + "}"));
  EXPECT_EQ(latent.kv_heads, 4);
  EXPECT_EQ(latent.head_dim, 192);
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
  EXPECT_THAT(refusal(R"({"model_type": "llama", "hidden_size": 1000000000000})"),
              HasSubstr("hidden_size: 1000000000000 is not a whole number from 1 to 2147483647"));
  EXPECT_THAT(refusal(R"({"model_type": "llama", "num_hidden_layers": 1000000})"),
              HasSubstr("num_hidden_layers: 1000000 is more than 10000"));
  EXPECT_THAT(refusal(R"({"model_type": "deepseek_v3", "qk_rope_head_dim": 7})"),
              HasSubstr("qk_rope_head_dim 7 must be even"));
  EXPECT_THAT(refusal(R"({"model_type": "gpt_oss", "swiglu_limit": -1})"),
              HasSubstr("swiglu_limit: -1 is not above 0"));
  EXPECT_THAT(refusal(R"({"model_type": "mixtral", "router_aux_loss_coef": -1})"),
              HasSubstr("config.json, router_aux_loss_coef: -1 is below 0"));
  const auto yarn = [&](const char* key) {
    return refusal(fmt::format(
        R"({{"model_type": "llama", "rope_scaling": {{"type": "yarn", "factor": 2, "{}": -3}}}})",
        key));
  };
  EXPECT_THAT(yarn("attention_factor"), HasSubstr("attention_factor: -3 is not above 0"));
  EXPECT_THAT(yarn("mscale"), HasSubstr("rope_scaling.mscale: -3 is below 0"));
  EXPECT_THAT(yarn("mscale_all_dim"), HasSubstr("rope_scaling.mscale_all_dim: -3 is below 0"));
}

/// As convert_rope_params_to_dict() and standardize_rope_params() of transformers 5.
TEST_F(Config, RotaryEmbeddingIsThatOfTransformers) {
  const auto shape_of = [&](const std::string& rope) {
    return read_config(
        file(R"({"model_type": "llama", "max_position_embeddings": 256, )" + rope + "}"));
  };
  const std::string yarn = R"("rope_scaling": {"type": "yarn", "factor": 4)";
  for (const char* parameters :
       {"", R"(, "rope_parameters": {})", R"(, "rope_parameters": {"rope_type": "default"})"}) {
    const model::DecoderShape shape = shape_of(yarn + "}" + parameters);
    ASSERT_TRUE(shape.yarn) << parameters;
    EXPECT_EQ(shape.yarn->original_max_position, 256);
  }
  EXPECT_EQ(
      shape_of(yarn + R"(, "original_max_position_embeddings": 32})").yarn->original_max_position,
      32);
  EXPECT_EQ(shape_of(yarn + R"(, "original_max_position_embeddings": 32},
                     "original_max_position_embeddings": 64)")
                .yarn->original_max_position,
            64);
  EXPECT_EQ(shape_of(R"("rope_scaling": {"rope_type": "llama3", "factor": 8,
                     "low_freq_factor": 1, "high_freq_factor": 4})")
                .rope_scaling->original_max_position,
            256);
  EXPECT_EQ(
      shape_of(yarn + R"(, "rope_theta": 7}, "rope_parameters": {"rope_theta": 7})").rope_theta, 7);
  EXPECT_THAT(
      refusal(R"({"model_type": "llama", )" + yarn + R"(}, "rope_parameters": {"rope_theta": 7}})"),
      HasSubstr("rope_scaling: it replaces rope_parameters, whose rope_theta is 7, and has "
                "10000; set its rope_theta"));
}

TEST_F(Config, AbsentPositionsAreThoseOfTheClass) {
  for (const auto& [type, positions] :
       {std::pair("llama", 2048), std::pair("qwen3", 32768), std::pair("qwen3_moe", 32768),
        std::pair("mixtral", 131072), std::pair("deepseek_v3", 4096),
        std::pair("gpt_oss", 131072)}) {
    const model::DecoderShape shape = read_config(file(fmt::format(
        R"({{"model_type": "{}", "rope_scaling": {{"type": "yarn", "factor": 4}}}})", type)));
    EXPECT_EQ(shape.max_positions, positions) << type;
    EXPECT_EQ(shape.yarn->original_max_position, positions) << type;
  }
}

TEST_F(Config, AScalingNeedsItsKeysAndNoOthers) {
  const auto scaling = [&](const std::string& keys) {
    return refusal(R"({"model_type": "llama", "rope_scaling": {)" + keys + "}}");
  };
  const std::string llama3 = R"("rope_type": "llama3", )", yarn = R"("type": "yarn", "factor": 4)";
  const std::string whole = R"("factor": 8, "low_freq_factor": 1, "high_freq_factor": 4)";
  EXPECT_THAT(scaling(R"("rope_type": "llama3")"),
              HasSubstr("config.json, rope_scaling.factor: llama3 needs it"));
  EXPECT_THAT(scaling(llama3 + R"("factor": 8, "high_freq_factor": 4)"),
              HasSubstr("rope_scaling.low_freq_factor: llama3 needs it"));
  EXPECT_THAT(scaling(llama3 + R"("factor": 8, "low_freq_factor": 4)"),
              HasSubstr("rope_scaling.high_freq_factor: llama3 needs it"));
  EXPECT_THAT(scaling(llama3 + R"("facter": 3)"),
              HasSubstr("rope_scaling.facter: RoPE scaling of type \"llama3\" has no such key; "
                        "did you mean 'factor'?; correct or remove it"));
  EXPECT_THAT(scaling(llama3 + R"("beta_fast": 32, )" + whole), HasSubstr("beta_fast: RoPE"));
  EXPECT_THAT(scaling(yarn + R"(, "beta_fats": 3)"), HasSubstr("did you mean 'beta_fast'"));
  EXPECT_THAT(scaling(R"("type": "yarn")"), HasSubstr("rope_scaling.factor: YaRN needs it"));
  EXPECT_THAT(scaling(R"("factor": 4)"),
              HasSubstr("rope_scaling.factor: it has no effect without \"rope_type\"; name one"));
  EXPECT_THAT(scaling(R"("type": "default", "factor": 4)"),
              HasSubstr("rope_scaling.factor: RoPE scaling of type \"default\" has no such key"));
  EXPECT_THAT(refusal(R"({"model_type": "qwen3", "rope_parameters": {"full_attention": {}}})"),
              HasSubstr("rope_parameters.full_attention: it has no effect without"));
  // Of published files.
  for (const std::string& keys :
       {llama3 + whole + R"(, "rope_theta": 7, "original_max_position_embeddings": 8192)",
        yarn + R"(, "finetuned": true, "attention_factor": null, "other": null, "truncate": false)",
        yarn + R"(, "rope_type": "yarn", "beta_fast": 32, "beta_slow": 1, "mscale": 1.0,
                  "mscale_all_dim": 1.0, "original_max_position_embeddings": 4096)",
        std::string(R"("rope_type": "default", "type": "default", "partial_rotary_factor": 1.0)")})
    EXPECT_NO_THROW(read_config(file(R"({"model_type": "llama", "rope_scaling": {)" + keys + "}}")))
        << keys;
}

TEST_F(Config, HeadsAreRotatedWhole) {
  for (const char* keys :
       {R"("partial_rotary_factor": 0.5)", R"("rope_parameters": {"partial_rotary_factor": 0.5})",
        R"("rope_scaling": {"type": "yarn", "factor": 2, "partial_rotary_factor": 0.5})"})
    EXPECT_THAT(refusal(fmt::format(R"({{"model_type": "llama", {}}})", keys)),
                HasSubstr("partial_rotary_factor: 0.5 is not supported"));
  EXPECT_NO_THROW(read_config(file(R"({"model_type": "llama", "partial_rotary_factor": 1.0})")));
}

TEST_F(Config, AnEmptyScalingIsNone) {
  for (const char* scaling : {"", R"(, "rope_scaling": null)", R"(, "rope_scaling": {})"}) {
    const model::DecoderShape shape =
        read_config(file(fmt::format(R"({{"model_type": "gpt_oss", "{}": 64{}}})",
                                     "original_max_position_embeddings", scaling)));
    ASSERT_TRUE(shape.yarn) << scaling;
    EXPECT_EQ(shape.yarn->factor, 32);
    EXPECT_EQ(shape.yarn->original_max_position, 64);
  }
}

TEST_F(Config, LatentsOfEarlierReleasesHadTheEpsilonOfTheOthers) {
  const model::DecoderShape shape = read_config(file(R"({"model_type": "deepseek_v3"})"));
  const auto differences = [&](const char* eps) {
    return model::differences(
        model::properties_of(shape),
        model::properties_in(fmt::format(
            R"({{"model": {{"rms_norm_eps": "{}", "qk_rope_head_dim": "64"}}}})", eps)));
  };
  EXPECT_EQ(differences("1e-06"), "");
  EXPECT_THAT(differences("1e-05"), HasSubstr("latent_norm_eps is 1e-06, was 1e-05"));
  EXPECT_TRUE(model::properties_in("{}").empty());
  EXPECT_TRUE(model::properties_in("[]").empty());
}

TEST_F(Config, LatentsAreThoseOfTransformers) {
  const auto shape_of = [&](const std::string& more) {
    return read_config(file(R"({"model_type": "deepseek_v3", "rms_norm_eps": 0.01)" + more + "}"));
  };
  EXPECT_EQ(shape_of("").latent->norm_eps, 1e-6);
  EXPECT_EQ(shape_of("").norm_eps, 0.01);
  EXPECT_EQ(shape_of("").latent->query_rank, 1536);
  EXPECT_EQ(shape_of(R"(, "q_lora_rank": null)").latent->query_rank, 0);
  EXPECT_THAT(refusal(R"({"model_type": "deepseek_v3", "rope_scaling": {"type": "llama3",
                      "mscale_all_dim": 1}})"),
              HasSubstr("mscale_all_dim: it is supported with YaRN alone"));
}

TEST_F(Config, WhatTesseraLacksIsRefused) {
  EXPECT_THAT(refusal(R"({"model_type": "llama", "attention_dropout": 0.1})"),
              HasSubstr("attention_dropout: Tessera adds no noise"));
  EXPECT_THAT(refusal(R"({"model_type": "qwen3", "layer_types": ["sliding_attention"]})"),
              HasSubstr("Qwen3 has full attention alone"));
}

TEST_F(Config, WindowsOfGptOssAreNotLeftOut) {
  EXPECT_EQ(read_config(file(R"({"model_type": "gpt_oss"})")).window, 128);
  EXPECT_THAT(refusal(R"({"model_type": "gpt_oss", "sliding_window": null})"),
              HasSubstr("config.json, sliding_window: gpt-oss needs it in every other layer"));
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
