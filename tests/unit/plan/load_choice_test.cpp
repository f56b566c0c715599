// SPDX-License-Identifier: Apache-2.0
#include "tessera/plan/checkpoint_plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_of.hpp"
#include "tessera/base/error.hpp"
#include "tessera/model_spec/families.hpp"

namespace tessera::plan {
namespace {

using tessera::test::error_of;
using testing::HasSubstr;

model::ModelSpec tiny(bool tied) {
  model::DecoderShape shape;
  shape.dim = 8;
  shape.layers = 2;
  shape.heads = shape.kv_heads = 2;
  shape.head_dim = 4;
  shape.hidden = 16;
  shape.vocab = 32;
  shape.tied = tied;
  return model::spec_of(shape);
}

config::Checkpoint excluding(std::vector<std::string> what) {
  config::Checkpoint options;
  options.exclude_from_loading = std::move(what);
  return options;
}

TEST(LoadChoice, KnowsTorchTitansWordsAndPatterns) {
  const LoadChoice all = LoadChoice::of({}, tiny(false));
  EXPECT_TRUE(all.optimizer && all.schedule && all.data && !all.is_partial());
  EXPECT_EQ(all.left_out(), "");
  const LoadChoice words =
      LoadChoice::of(excluding({"optimizer", "lr_scheduler", "dataloader"}), tiny(false));
  EXPECT_FALSE(words.optimizer || words.schedule || words.data || words.is_partial());
  EXPECT_EQ(words.left_out(), "optimizer, lr_scheduler, dataloader");
  const LoadChoice patterns = LoadChoice::of(excluding({"^output", "layers[.]1[.]"}), tiny(false));
  EXPECT_TRUE(patterns.is_partial() && patterns.optimizer);
  EXPECT_TRUE(patterns.excludes("output.weight") &&
              patterns.excludes("layers.1.attention.wq.weight"));
  EXPECT_FALSE(patterns.excludes("layers.0.attention.wq.weight"));
}

TEST(LoadChoice, LeavesMomentsOutWithTheirParameter) {
  const model::ModelSpec model = tiny(false);
  const auto leaves_out = [&](std::vector<std::string> what, const char* name) {
    return LoadChoice::of(excluding(std::move(what)), model).skips(name);
  };
  EXPECT_TRUE(leaves_out({"^output"}, "model/output.weight"));
  EXPECT_TRUE(leaves_out({"^output"}, "optimizer/exp_avg/output.weight"));
  EXPECT_FALSE(leaves_out({"^output"}, "optimizer/exp_avg/norm.weight"));
  EXPECT_TRUE(leaves_out({"optimizer"}, "optimizer/exp_avg/norm.weight"));
  EXPECT_FALSE(leaves_out({"optimizer"}, "model/norm.weight"));
}

TEST(LoadChoice, RefusesPatternsThatMatchNothing) {
  for (const char* pattern : {"outptu", "layers[.]9", "("})
    EXPECT_THAT(
        error_of(ExitCode::usage, [&] { LoadChoice::of(excluding({pattern}), tiny(false)); }),
        HasSubstr("checkpoint.exclude_from_loading: \"" + std::string(pattern)));
  EXPECT_TRUE(LoadChoice::of(excluding({"^output"}), tiny(true)).is_partial())
      << "of an untied checkpoint";
}

TEST(LoadChoice, OfARunThatStartsFromAnotherIsForThatStart) {
  config::Checkpoint options = excluding({"^output", "optimizer", "dataloader"});
  options.load_mismatch = "warn";
  options.load_step = 7;
  EXPECT_EQ(LoadChoice::of_own(options, tiny(false)).excluded.size(), 1u);
  options.initial_load_path = "elsewhere";
  const LoadChoice own = LoadChoice::of_own(options, tiny(false));
  EXPECT_TRUE(own.excluded.empty() && own.mismatch == Mismatch::strict);
  EXPECT_TRUE(own.optimizer) << "a run that is requeued goes on with its moments";
  EXPECT_FALSE(own.data) << "or a run could never go on with other data";
  EXPECT_EQ(own.step, 7);
  EXPECT_EQ(LoadChoice::of(options, tiny(false)).mismatch, Mismatch::warn);
}

}  // namespace
}  // namespace tessera::plan
