// SPDX-License-Identifier: Apache-2.0
// Safetensors -> checkpoint: the bits of every family, of TorchTitan's names and of quantized
// weights; mistakes.
#include "tessera/inputs/hf_conversion.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "support/error_of.hpp"
#include "support/temporary_folder.hpp"
#include "tessera/base/error.hpp"
#include "tessera/checkpoint/compare.hpp"
#include "tessera/checkpoint/inspect.hpp"
#include "tessera/hf/safetensors.hpp"
#include "tessera/train/inference.hpp"

namespace tessera::train {
namespace {

using tessera::test::error_of;
using tessera::test::TemporaryFolder;

namespace fs = std::filesystem;
using hf::SafetensorsReader;
using testing::HasSubstr;

const std::string kGolden = std::string(TESSERA_TEST_DATA) + "/";

class HfImport : public testing::Test {
 protected:
  fs::path operator/(const char* name) const { return folder_ / name; }
  checkpoint::CheckpointReader opened(const fs::path& step) const {
    return checkpoint::open(*control_, step);
  }

  void expect_equal(const fs::path& a, const fs::path& b) const {
    compare(opened(a), opened(b), [](const checkpoint::TensorComparison& tensor) {
      EXPECT_TRUE(tensor.is_equal())
          << tensor.name << ": " << tensor.differing << " of " << tensor.elements;
    });
  }
  std::string refusal(const fs::path& weights, const inputs::ImportOptions& options,
                      ExitCode code = ExitCode::data) const {
    const std::string error = error_of(code, [&] { inputs::import_weights(weights, options); });
    EXPECT_TRUE(checkpoint::list_steps(options.folder).empty());
    return error;
  }

 private:
  TemporaryFolder folder_;
  std::unique_ptr<comm::Communicator> control_ = comm::make_self_communicator("import");
};

std::string bytes_of(const SafetensorsReader& reader, const TensorInfo& entry) {
  std::string bytes(static_cast<std::size_t>(element_count(entry.shape)) * size_of(entry.dtype),
                    '\0');
  reader.read_whole(entry.name, entry.dtype, bytes.data());
  return bytes;
}

TEST_F(HfImport, EveryFamilyGoesInAndOutBitForBit) {
  for (const std::string family : {"qwen3", "qwen3_moe", "mixtral", "deepseek_v3", "gpt_oss"}) {
    const fs::path step =
        inputs::import_weights(kGolden + "families/" + family, {*this / family.c_str(), {}, {}, 3});
    EXPECT_EQ(checkpoint::describe(checkpoint::verify(step, true)), "");
    EXPECT_EQ(checkpoint::summarize(step).files, 3);
    inputs::export_hf(step, *this / "out", {DType::f32, true, {}});
    const SafetensorsReader theirs(kGolden + "families/" + family), ours(*this / "out");
    EXPECT_EQ(theirs.tensors().size(), ours.tensors().size());
    for (const TensorInfo& entry : theirs.tensors()) {
      const TensorInfo* again = ours.find(entry.name);
      ASSERT_TRUE(again) << entry.name;
      EXPECT_EQ(bytes_of(theirs, entry), bytes_of(ours, *again)) << family << " " << entry.name;
    }
  }
}

/// TorchTitan's scripts write a Llama under its own names, in the rows' order that is ours too.
void write_with_titans_names(const checkpoint::CheckpointReader& opened, const fs::path& file) {
  std::vector<TensorInfo> entries;
  for (const TensorInfo& tensor : opened.tensors())
    entries.push_back({tensor.name.substr(sizeof("model/") - 1), tensor.dtype, tensor.shape});
  hf::SafetensorsWriter writer(file, entries);
  for (const TensorInfo& entry : entries) {
    std::vector<std::byte> values(static_cast<std::size_t>(element_count(entry.shape)) *
                                  size_of(entry.dtype));
    opened.read({"model/" + entry.name, entry.dtype, entry.shape, Shape(entry.shape.size(), 0),
                 entry.shape},
                values.data());
    writer.write(entry.name, 0, element_count(entry.shape), values.data());
  }
  writer.finish();
}

TEST_F(HfImport, TorchTitansNamesGiveTheSameCheckpoint) {
  const fs::path plain = inputs::import_weights(kGolden + "hf_tiny", {*this / "hf", {}, {}, 1});
  write_with_titans_names(opened(plain), *this / "titan.safetensors");
  const std::vector<std::string> config{"--model.hf_config", kGolden + "hf_tiny/config.json"};
  const fs::path again =
      inputs::import_weights(*this / "titan.safetensors", {*this / "titan", config, {}, 2});
  expect_equal(plain, again);
  inputs::export_hf(again, *this / "out", {DType::f32, true, {}});
  EXPECT_TRUE(fs::exists(*this / "out" / "model.safetensors"));

  const fs::path qwen =
      inputs::import_weights(kGolden + "families/qwen3", {*this / "qwen", {}, {}, 1});
  write_with_titans_names(opened(qwen), *this / "qwen.safetensors");
  EXPECT_THAT(
      refusal(*this / "qwen.safetensors",
              {*this / "no", {"--model.hf_config", kGolden + "families/qwen3/config.json"}, {}, 1}),
      HasSubstr("for Llama only"));
}

TEST_F(HfImport, TypesConvert) {
  const fs::path step =
      inputs::import_weights(kGolden + "hf_tiny", {*this / "bf16", {}, DType::bf16, 1});
  for (const TensorInfo& tensor : checkpoint::summarize(step).tensors)
    EXPECT_EQ(tensor.dtype, DType::bf16);
}

/// tests/golden/make_quantized.py has decoded the twins.
TEST_F(HfImport, QuantizedWeightsAreThoseThatPyTorchDecodes) {
  for (const std::string kind : {"fp8", "mxfp4"}) {
    const std::string from = kGolden + "quantized/" + kind;
    const fs::path ours = inputs::import_weights(from, {*this / kind.c_str(), {}, {}, 2});
    const fs::path theirs =
        inputs::import_weights(from + "/twin", {*this / (kind + "-twin").c_str(), {}, {}, 1});
    expect_equal(ours, theirs);
  }
}

/// Without a detour: checkpoint.initial_load_in_hf_quantized.
TEST_F(HfImport, QuantizedWeightsLoadDirectly) {
  const std::string from = kGolden + "quantized/mxfp4";
  const auto logits = [](const std::string& folder, bool quantized) {
    std::vector<std::string> words{"--model.hf_config", folder + "/config.json",
                                   "--checkpoint.initial_load_path", folder,
                                   "--checkpoint.initial_load_in_hf"};
    if (quantized) words.push_back("--checkpoint.initial_load_in_hf_quantized");
    Inference model(plan::plan_inference(config::resolve(words), 0), 16, nullptr);
    return model.logits(at::arange(16).view({1, -1}));
  };
  const at::Tensor theirs = logits(from + "/twin", false);
  EXPECT_TRUE(logits(from, true).equal(theirs));
  EXPECT_TRUE(logits(from, false).equal(theirs))
      << "the files say themselves that they are quantized";
}

TEST_F(HfImport, MistakesAreNamed) {
  const std::string tiny = kGolden + "hf_tiny", qwen = kGolden + "families/qwen3";
  EXPECT_THAT(refusal(qwen, {*this / "a", {"--model.hf_config", tiny + "/config.json"}, {}, 1}),
              HasSubstr("are these the weights of another model?"));
  fs::create_directories(*this / "bare");
  fs::copy_file(tiny + "/model.safetensors", *this / "bare" / "model.safetensors");
  EXPECT_THAT(refusal(*this / "bare", {*this / "b", {}, {}, 1}), HasSubstr("--config"));
  fs::resize_file(*this / "bare" / "model.safetensors",
                  fs::file_size(*this / "bare" / "model.safetensors") - 1);
  EXPECT_THAT(
      refusal(*this / "bare", {*this / "c", {"--model.hf_config", tiny + "/config.json"}, {}, 1}),
      HasSubstr("truncated"));
  inputs::import_weights(tiny, {*this / "d", {}, {}, 1});
  error_of(ExitCode::usage, [&] { inputs::import_weights(tiny, {*this / "d", {}, {}, 1}); });
}

TEST_F(HfImport, ScalesMustGoWithTheirTensor) {
  const auto write = [&](const std::vector<TensorInfo>& entries) {
    hf::SafetensorsWriter writer(*this / "odd.safetensors", entries);
    for (const TensorInfo& entry : entries) {
      const std::vector<std::byte> zeros(static_cast<std::size_t>(element_count(entry.shape)) *
                                         size_of(entry.dtype));
      writer.write(entry.name, 0, element_count(entry.shape), zeros.data());
    }
    writer.finish();
    return refusal(*this / "odd.safetensors",
                   {*this / "e", {"--model.hf_config", kGolden + "hf_tiny/config.json"}, {}, 1});
  };
  fs::create_directories(*this / "");
  EXPECT_THAT(write({{"w", DType::f8e4m3, {129, 3}}, {"w_scale_inv", DType::f32, {1, 1}}}),
              HasSubstr("w_scale_inv [1, 1] do not fit w [129, 3]"));
  EXPECT_THAT(write({{"w_blocks", DType::u8, {2, 3, 1, 16}}, {"w_scales", DType::u8, {2, 3}}}),
              HasSubstr("w_scales [2, 3] do not fit w_blocks [2, 3, 1, 16]"));
  EXPECT_THAT(write({{"w", DType::f8e4m3, {129, 3}}}),
              HasSubstr("there is no model.embed_tokens.weight"));
}

}  // namespace
}  // namespace tessera::train
