// SPDX-License-Identifier: Apache-2.0
#include "tessera/model_spec/families.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "support/error_of.hpp"
#include "tessera/base/error.hpp"
#include "tessera/model_spec/model_spec.hpp"

namespace tessera::model {
namespace {

using tessera::test::error_of;
using testing::HasSubstr;

std::int64_t parameters(const char* family, const char* flavor) {
  return spec_of(decoder_flavor(family, flavor)).parameter_count();
}

/// As the published models' cards and index files count them.
TEST(Families, HaveThePublishedNumbersOfParameters) {
  EXPECT_EQ(parameters("llama3", "8B"), 8030261248);
  EXPECT_EQ(parameters("qwen3", "0.6B"), 596049920);
  EXPECT_EQ(parameters("qwen3", "8B"), 8190735360);
  EXPECT_EQ(parameters("qwen3", "30B-A3B"), 30532122624);
  EXPECT_EQ(parameters("qwen3", "235B-A22B"), 235093634560);
  EXPECT_EQ(parameters("mixtral", "8x7B"), 46702792704);
  EXPECT_EQ(parameters("deepseek_v3", "16B"), 15706484224);
  EXPECT_EQ(parameters("gpt_oss", "20b"), 20914757184);
  EXPECT_EQ(parameters("gpt_oss", "120b"), 116829156672);
}

TEST(Families, CountWhatATokenPasses) {
  const ModelSpec qwen = spec_of(decoder_flavor("qwen3", "30B-A3B"));
  EXPECT_NEAR(static_cast<double>(qwen.active_parameter_count()), 3.35e9, 0.02e9);
  const ModelSpec deepseek = spec_of(decoder_flavor("deepseek_v3", "671B"));
  EXPECT_NEAR(static_cast<double>(deepseek.parameter_count()), 671.03e9, 0.02e9);
  EXPECT_NEAR(static_cast<double>(deepseek.active_parameter_count()), 37.5e9, 0.2e9);
}

TEST(Families, EveryFlavorCanBeBuiltAndFreeOfGapsBetweenCells) {
  for (const std::string& family : family_names())
    for (const std::string& flavor : flavors_of(family)) {
      const ModelSpec model = spec_of(decoder_flavor(family, flavor));
      EXPECT_FALSE(model.params.empty()) << family << " " << flavor;
      for (const CellSpec& cell : model.cells) EXPECT_FALSE(cell.live.empty()) << cell.name;
    }
}

double initial_std(const char* family, const std::string& name) {
  const ModelSpec model = spec_of(decoder_flavor(family, "debugmodel"));
  for (const ParamSpec& spec : model.params)
    if (spec.fqn == name) return spec.init.std;
  ADD_FAILURE() << family << " has no " << name;
  return 0;
}

/// In TorchTitan, gpt-oss is the family whose queries, keys, values and gates begin smaller, too.
TEST(Families, BeginSmallerInLaterBlocks) {
  const double second = 0.02 / std::sqrt(4.0);
  EXPECT_DOUBLE_EQ(initial_std("llama3", "layers.1.attention.wo.weight"), second);
  EXPECT_DOUBLE_EQ(initial_std("llama3", "layers.1.attention.wq.weight"), 0.02);
  EXPECT_DOUBLE_EQ(initial_std("deepseek_v3", "layers.1.moe.experts.w1"), 0.02);
  for (const char* name :
       {"attention.wq.weight", "attention.wk.bias", "attention.wv.weight", "attention.sinks",
        "moe.experts.w1", "moe.experts.w1_bias", "moe.router.gate.bias"})
    EXPECT_DOUBLE_EQ(initial_std("gpt_oss", std::string("layers.1.") + name), second) << name;
}

std::string message_of(const char* family, const char* flavor) {
  return error_of(ExitCode::usage, [&] { decoder_flavor(family, flavor); });
}

TEST(Families, NamesThatAreNotThereGetSuggestions) {
  EXPECT_THAT(message_of("qwen", "8B"), HasSubstr("did you mean 'qwen3'"));
  EXPECT_THAT(message_of("qwen3", "30B-A3"), HasSubstr("did you mean '30B-A3B'"));
  EXPECT_THAT(message_of("gpt_oss", "7b"), HasSubstr("debugmodel, 20b, 120b"));
}

/// DeepSeek-V3 has YaRN beyond 4,096 positions.
TEST(Properties, ForOthersHaveTheYarnOfTheTraining) {
  const DecoderShape shape = decoder_flavor("deepseek_v3", "671B");
  const auto scaling = [&](std::int64_t positions) {
    return properties_for_others(shape, positions).at("rope_scaling");
  };
  EXPECT_EQ(scaling(4096), "none");
  EXPECT_EQ(scaling(4097).substr(0, 9), "yarn(40, ");
  EXPECT_EQ(properties_of(shape).at("rope_scaling"), "none");
}

}  // namespace
}  // namespace tessera::model
