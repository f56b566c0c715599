// SPDX-License-Identifier: Apache-2.0
// Tiny models of every family as transformers saves them (tests/golden/families): the same logits,
// the same loss, and the same file when they are exported again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "support/error_of.hpp"
#include "support/golden_families.hpp"
#include "support/temporary_folder.hpp"
#include "tessera/base/error.hpp"
#include "tessera/hf/safetensors.hpp"
#include "tessera/inputs/hf_conversion.hpp"
#include "tessera/train/inference.hpp"
#include "tessera/train/model_weights.hpp"
#include "tessera/train/setup.hpp"
#include "tessera/train/trainer.hpp"
#include "tessera/train/training_state.hpp"

namespace tessera::train {
namespace {

using tessera::test::error_of;
using tessera::test::TemporaryFolder;

namespace fs = std::filesystem;

const std::string kFamilies = std::string(TESSERA_TEST_DATA) + "/families/";

config::Resolved job(const std::string& family, const char* config, const char* dtype) {
  const std::string folder = kFamilies + family + "/";
  return config::resolve({"--model.hf_config", folder + config, "--checkpoint.initial_load_path",
                          folder + "model.safetensors", "--checkpoint.initial_load_in_hf",
                          "--training.dtype", dtype, "--training.seq_len", "24",
                          "--training.local_batch_size", "2", "--training.dataset_path", "x",
                          "--activation_checkpoint.mode", "none"});
}

at::Tensor expected(const std::string& family, const char* name, DType dtype) {
  const hf::SafetensorsReader reader(kFamilies + family + "/expected.safetensors");
  const auto type = dtype == DType::i64   ? at::kLong
                    : dtype == DType::f64 ? at::kDouble
                                          : at::kFloat;
  const at::Tensor values = at::empty(reader.find(name)->shape, type);
  reader.read_whole(name, dtype, values.data_ptr());
  return values;
}

class Families : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(All, Families, testing::ValuesIn(tessera::test::golden_families()),
                         [](const auto& info) { return info.param; });

TEST_P(Families, LogitsAreThoseOfTransformers) {
  const at::Tensor ids = expected(GetParam(), "input_ids", DType::i64);
  const at::Tensor logits = expected(GetParam(), "logits", DType::f32);
  for (const char* config : {"config.json", "config.v4.json"})
    for (const char* dtype : {"float32", "float64"}) {
      Inference model(plan::plan_inference(job(GetParam(), config, dtype), 0), 24, nullptr);
      EXPECT_LE((model.logits(ids) - logits).abs().max().item<double>(), 1e-5)
          << config << " in " << dtype;
    }
}

/// With keys and values remembered as without: the most likely token behind each prefix.
TEST_P(Families, GenerationFollowsTheLogits) {
  Inference model(plan::plan_inference(job(GetParam(), "config.json", "float64"), 0), 24, nullptr);
  const std::vector<std::int32_t> prompt{1, 2, 3, 4, 5};
  const auto generated = model.generate(prompt, 12, {});
  std::vector<std::int64_t> all(prompt.begin(), prompt.end());
  for (const std::int32_t token : generated) {
    const at::Tensor logits = model.logits(at::tensor(all).view({1, -1}));
    EXPECT_EQ(token, logits[0][-1].argmax().item<std::int64_t>())
        << "behind " << all.size() << " tokens";
    all.push_back(token);
  }
}

/// The stored sequences, labels one position ahead.
class Stored final : public data::SampleSource {
 public:
  explicit Stored(const std::string& family) : ids_(expected(family, "input_ids", DType::i64)) {}
  std::int64_t seq_len() const override { return ids_.size(1); }
  std::optional<std::int64_t> sample_limit() const override { return std::nullopt; }
  void read(std::int64_t sample, std::span<std::int32_t> inputs,
            std::span<std::int32_t> labels) const override {
    for (std::size_t t = 0; t < inputs.size(); ++t) {
      const auto token = [&](std::size_t at) {
        return ids_[sample % 2][static_cast<std::int64_t>(at)].item<std::int32_t>();
      };
      inputs[t] = token(t);
      labels[t] = t + 1 < inputs.size() ? token(t + 1) : -100;
    }
  }

 private:
  at::Tensor ids_;
};

/// A job of one rank whose weights are the family's.
struct OneRank {
  OneRank(const std::string& family, const char* dtype)
      : plan(plan::plan_job(job(family, "config.json", dtype), 1, 0)),
        mesh(plan.layout, mesh::Rank(0)),
        model(model_of(plan, at::kCPU)),
        source(family),
        trainer(plan, model, mesh, source, at::kCPU) {
    load_hf_model({trainer.stages().holdings(), model, mesh}, kFamilies + family);
  }

  plan::JobPlan plan;
  mesh::DeviceMesh mesh;
  model::Model model;
  Stored source;
  Trainer trainer;
};

TEST(FamiliesLoss, OfMixtralHasTheRoutersAuxiliaryLoss) {
  OneRank job("mixtral", "float64");
  const StepOutcome outcome = job.trainer.step();
  const double auxiliary = 0.02 * expected("mixtral", "aux_loss", DType::f64).item<double>();
  EXPECT_NEAR(outcome.balance_loss, auxiliary, 1e-6);
  EXPECT_NEAR(outcome.loss + outcome.balance_loss,
              expected("mixtral", "loss", DType::f64).item<double>(), 1e-6);
  ASSERT_EQ(outcome.loads.size(), 2u);
  EXPECT_GE(outcome.loads[0].max_over_mean, 1);
}

std::string stored_bytes(const hf::SafetensorsReader& reader, const TensorInfo& entry) {
  std::string bytes(static_cast<std::size_t>(element_count(entry.shape)) * size_of(entry.dtype),
                    '\0');
  reader.read_whole(entry.name, entry.dtype, bytes.data());
  return bytes;
}

TEST_P(Families, ExportedAgainIsTheSameFile) {
  const TemporaryFolder folder;
  OneRank job(GetParam(), "float32");
  {
    checkpoint::Saver saver(job.trainer.mesh().control());
    save_state(saver, job.trainer, job.plan, folder / "checkpoint", {1, 2});
  }
  inputs::export_hf(folder / "checkpoint", folder / "hf", {DType::f32, true, {}});
  const hf::SafetensorsReader theirs(kFamilies + GetParam()), ours(folder / "hf");
  EXPECT_EQ(theirs.tensors().size(), ours.tensors().size());
  for (const TensorInfo& entry : theirs.tensors()) {
    const TensorInfo* again = ours.find(entry.name);
    ASSERT_TRUE(again) << entry.name;
    EXPECT_EQ(again->shape, entry.shape) << entry.name;
    EXPECT_EQ(stored_bytes(theirs, entry), stored_bytes(ours, *again)) << entry.name;
  }
  const config::Resolved exported =
      config::resolve({"--model.hf_config", (folder / "hf" / "config.json").string(),
                       "--checkpoint.initial_load_path", (folder / "hf").string(),
                       "--checkpoint.initial_load_in_hf"});
  Inference model(plan::plan_inference(exported, 0), 24, nullptr);
  const at::Tensor logits = model.logits(expected(GetParam(), "input_ids", DType::i64));
  EXPECT_LE((logits - expected(GetParam(), "logits", DType::f32)).abs().max().item<double>(), 1e-5);
}

TEST(FamiliesMistakes, ADescriptionOfAnotherModelIsNamed) {
  OneRank job("mixtral", "float32");
  const auto warnings = [&](model::Properties described) {
    testing::internal::CaptureStderr();
    load_hf_model({job.trainer.stages().holdings(), job.model, job.mesh, 0, std::move(described)},
                  kFamilies + "mixtral");
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(warnings({}), testing::Not(testing::HasSubstr("rope_theta")));
  EXPECT_THAT(warnings({{"rope_theta", "7"}}), testing::HasSubstr("rope_theta is 7, was"));
}

TEST(FamiliesMistakes, AreNamed) {
  OneRank job("mixtral", "float32");
  const std::string error = error_of(ExitCode::data, [&] {
    load_hf_model({job.trainer.stages().holdings(), job.model, job.mesh}, kFamilies + "qwen3");
  });
  EXPECT_THAT(error, testing::HasSubstr("qwen3 does not fit this job"));
  EXPECT_THAT(error, testing::HasSubstr("there is no model.layers."));
}

}  // namespace
}  // namespace tessera::train
