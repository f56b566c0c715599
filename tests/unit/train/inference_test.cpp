// SPDX-License-Identifier: Apache-2.0
// A Hugging Face model (tests/golden/hf_tiny): the same logits and the same greedy continuation as
// transformers.
#include "tessera/train/inference.hpp"

#include <gtest/gtest.h>

#include "tessera/base/error.hpp"
#include "tessera/hf/safetensors.hpp"

namespace tessera::train {
namespace {

const std::string kFolder = std::string(TESSERA_TEST_DATA) + "/hf_tiny/";

config::Resolved job(const std::string& config) {
  return config::resolve({"--model.hf_config", kFolder + config, "--checkpoint.initial_load_path",
                          kFolder + "model.safetensors", "--checkpoint.initial_load_in_hf"});
}

std::vector<std::int32_t> expected_ids(const std::string& name) {
  const hf::SafetensorsReader reader(kFolder + "expected.safetensors");
  std::vector<std::int32_t> ids(static_cast<std::size_t>(element_count(reader.find(name)->shape)));
  reader.read_whole(name, DType::i32, ids.data());
  return ids;
}

class HfTiny : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Spellings, HfTiny, testing::Values("config.json", "config.v4.json"));

TEST_P(HfTiny, LogitsAreThoseOfTransformers) {
  Inference model(plan::plan_inference(job(GetParam()), 0), 40, nullptr);
  const auto ids = expected_ids("input_ids");
  const at::Tensor tokens =
      at::tensor(std::vector<std::int64_t>(ids.begin(), ids.end())).view({1, -1});
  const at::Tensor logits = model.logits(tokens)[0];
  const hf::SafetensorsReader reader(kFolder + "expected.safetensors");
  const at::Tensor expected = at::empty({10, 1000});
  reader.read_whole("logits_every4th_f32", DType::f32, expected.data_ptr());
  const at::Tensor every4th = logits.index({at::indexing::Slice(0, at::indexing::None, 4)});
  EXPECT_LE((every4th - expected).abs().max().item<double>(), 2e-6);
  const auto argmax = expected_ids("logits_argmax");
  for (std::size_t i = 0; i < argmax.size(); ++i)
    EXPECT_EQ(logits[static_cast<std::int64_t>(i)].argmax().item<std::int64_t>(), argmax[i]) << i;
}

TEST_P(HfTiny, GreedyContinuationIsThatOfTransformers) {
  Inference model(plan::plan_inference(job(GetParam()), 0), 56, nullptr);
  const auto all = expected_ids("greedy_16");
  const std::vector<std::int32_t> prompt(all.begin(), all.begin() + 40);
  EXPECT_EQ(model.generate(prompt, 16, {}), std::vector<std::int32_t>(all.begin() + 40, all.end()));
}

TEST(Inference, SamplingIsAFunctionOfTheSeed) {
  Inference model(plan::plan_inference(job("config.json"), 0), 30, nullptr);
  const auto a = model.generate({998, 5}, 20, {1.0, 0, 3});
  EXPECT_EQ(a, model.generate({998, 5}, 20, {1.0, 0, 3}));
  EXPECT_NE(a, model.generate({998, 5}, 20, {1.0, 0, 4}));
  EXPECT_EQ(model.generate({998, 5}, 20, {1.0, 1, 3}), model.generate({998, 5}, 20, {}));
  EXPECT_EQ(model.generate({998, 5}, 20, {1e-310, 0, 3}), model.generate({998, 5}, 20, {}));
}

TEST(Inference, RefusesWhatTheModelCannotTake) {
  Inference model(plan::plan_inference(job("config.json"), 0), 8, nullptr);
  EXPECT_THROW(model.generate({}, 2, {}), Error);
  const auto whole = model.generate({1, 2}, 6, {});
  EXPECT_EQ(model.generate({1, 2}, 6, {}, {-1, whole.front()}).size(), 1U);
  EXPECT_THROW(model.generate({1000}, 2, {}), Error);
  EXPECT_THROW(model.generate({1, 2}, 7, {}), Error);
  EXPECT_THROW(model.logits(at::full({1, 4}, -1, at::kLong)), Error);
}

}  // namespace
}  // namespace tessera::train
