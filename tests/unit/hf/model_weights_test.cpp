// SPDX-License-Identifier: Apache-2.0
// Files of other programs are loaded, and what does not fit is named, as checkpoints are.
#include "tessera/hf/model_weights.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "support/error_of.hpp"
#include "support/temporary_folder.hpp"
#include "tessera/base/error.hpp"
#include "tessera/checkpoint/load.hpp"
#include "tessera/hf/safetensors.hpp"

namespace tessera::hf {
namespace {

using checkpoint::LoadOptions;
using checkpoint::Policy;
using checkpoint::SliceView;
using tessera::test::error_if_any;
using tessera::test::TemporaryFolder;
using testing::HasSubstr;

model::ParamSpec parameter(const char* fqn, const char* hf_name, Shape shape, int rope_heads = 0) {
  model::ParamSpec param;
  param.fqn = fqn;
  param.hf_name = hf_name;
  param.global_shape = std::move(shape);
  param.rope_heads = rope_heads;
  return param;
}

/// Files lack the output layer and a norm, have another shape for wo, and one tensor too many.
class Weights : public testing::Test {
 protected:
  Weights() {
    SafetensorsWriter writer(file_, {{"model.embed_tokens.weight", DType::f32, {3, 2}},
                                     {"wq", DType::f32, {4, 1}},
                                     {"wo", DType::f32, {2, 2}},
                                     {"inv_freq", DType::f32, {1}}});
    std::vector<float> values(6);
    std::iota(values.begin(), values.end(), 0.0f);
    writer.write("model.embed_tokens.weight", 0, 6, values.data());
    writer.write("wq", 0, 4, values.data());
    writer.write("wo", 0, 4, values.data());
    writer.write("inv_freq", 0, 1, values.data());
    writer.finish();
    model_.name = "tiny";
    model_.params = {parameter("tok_embeddings.weight", "model.embed_tokens.weight", {3, 2}),
                     parameter("wq.weight", "wq", {4, 1}, 1),
                     parameter("output.weight", "lm_head.weight", {3, 2})};
    model_.buffers = {{"bias", {2}, ""}};
  }

  void want_what_does_not_fit() {
    model_.params.push_back(parameter("norm.weight", "norm", {2}));
    model_.params.push_back(parameter("wo.weight", "wo", {2, 3}));
  }

  /// Loads all of the model into values_, which are 9 before.
  void load(const LoadOptions& options) {
    const WeightFiles files(file_);
    const ModelWeights weights(files, model_, Names::hugging_face);
    std::vector<SliceView> views;
    const auto add = [&](const std::string& fqn, const Shape& shape) {
      values_[fqn].assign(static_cast<std::size_t>(element_count(shape)), 9);
      views.push_back({{"model/" + fqn, DType::f32, shape, whole(shape)}, values_[fqn].data()});
    };
    for (const model::ParamSpec& param : model_.params) add(param.fqn, param.global_shape);
    for (const model::BufferSpec& buffer : model_.buffers) add(buffer.fqn, buffer.shape);
    checkpoint::load(*control_, weights, views, options);
  }

  std::string refusal(const LoadOptions& options) {
    return error_if_any(ExitCode::data, [&] { load(options); });
  }

  TemporaryFolder folder_;
  std::filesystem::path file_ = folder_ / "x.safetensors";
  std::unique_ptr<comm::Communicator> control_ = comm::make_self_communicator("load");
  model::ModelSpec model_;
  std::map<std::string, std::vector<float>> values_;
};

using Values = std::vector<float>;

TEST_F(Weights, ComeUnderOurNamesAndInOurOrder) {
  load({});
  EXPECT_EQ(values_["tok_embeddings.weight"], (Values{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(values_["output.weight"], values_["tok_embeddings.weight"]);
  EXPECT_EQ(values_["wq.weight"], (Values{0, 2, 1, 3}));
  EXPECT_EQ(values_["bias"], (Values{0, 0}));
}

TEST_F(Weights, OfAnotherModelAreRefusedWithATable) {
  want_what_does_not_fit();
  const std::string why = refusal({});
  EXPECT_THAT(why, HasSubstr("x.safetensors does not fit this job"));
  EXPECT_THAT(why, HasSubstr("missing  model/norm.weight  there is no norm"));
  EXPECT_THAT(why, HasSubstr("differs  model/wo.weight  wo is [2, 2] and not [2, 3]"));
  EXPECT_EQ(values_["wq.weight"], Values(4, 9)) << "nothing was loaded";
}

TEST_F(Weights, ThatFitAreTakenIfThePolicySaysSo) {
  want_what_does_not_fit();
  std::vector<std::string> lines;
  const auto log = [&](const std::string& line) { lines.push_back(line); };
  load({Policy::warn, Policy::warn, log, Policy::warn});
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], HasSubstr("missing  model/norm.weight"));
  EXPECT_EQ(values_["wq.weight"], (Values{0, 2, 1, 3}));
  EXPECT_EQ(values_["norm.weight"], (Values{9, 9}));
  EXPECT_EQ(values_["wo.weight"], Values(6, 9));
  load({Policy::ignore, Policy::ignore, log, Policy::ignore});
  EXPECT_EQ(lines.size(), 1u);
}

TEST_F(Weights, WhatIsLeftOutIsNeitherLoadedNorMissed) {
  want_what_does_not_fit();
  LoadOptions options;
  options.leave_out = [](std::string_view name) { return name != "model/wq.weight"; };
  load(options);
  EXPECT_EQ(values_["wq.weight"], (Values{0, 2, 1, 3}));
  EXPECT_EQ(values_["output.weight"], Values(6, 9));
}

}  // namespace
}  // namespace tessera::hf
