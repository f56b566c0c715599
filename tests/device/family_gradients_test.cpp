// SPDX-License-Identifier: Apache-2.0
// Gradients of every model family on the device under test, against float64 on the host: as far off
// as the host's own of the same type, and not much more.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "mpi/comm/mpi_main.hpp"
#include "mpi/train/first_step.hpp"
#include "mpi/train/tiny_model.hpp"
#include "tessera/model_spec/families.hpp"
#include "tessera/train/device.hpp"
#include "test_device.hpp"

namespace tessera::test {
namespace {

/// Sequences long enough for the blocks of a GPU's attention.
class LongSource final : public data::SampleSource {
 public:
  explicit LongSource(std::int64_t length) : length_(length) {}
  std::int64_t seq_len() const override { return length_; }
  std::optional<std::int64_t> sample_limit() const override { return std::nullopt; }
  void read(std::int64_t sample, std::span<std::int32_t> inputs,
            std::span<std::int32_t> labels) const override {
    UnevenSource().read(sample, inputs, labels);
  }

 private:
  std::int64_t length_;
};

/// On a real GPU TorchTitan's debug models with two layers, whose heads are as wide as published
/// ones; else tiny ones.
model::Model model_of(const std::string& family, at::ScalarType compute, at::Device device,
                      std::int64_t length) {
  if (wanted_device() != "cuda")
    return family == "llama3" ? tiny_model(false, compute, 4, device)
                              : tiny_family(family, compute, device);
  const bool qwen_moe = family == "qwen3_moe";
  model::DecoderShape shape = model::decoder_flavor(qwen_moe ? "qwen3" : family,
                                                    qwen_moe ? "debugmodel_moe" : "debugmodel");
  shape.layers = 2;
  shape.vocab = 512;
  return model::make_decoder(shape, length, compute, device);
}

FirstStep result_of(const std::string& family, const std::string& dtype, at::Device device) {
  const std::int64_t length = wanted_device() == "cuda" ? 256 : 16;
  config::JobConfig job = tiny_job(dtype == "bfloat16" ? "float32" : dtype);
  job.training.mixed_precision_param = dtype == "bfloat16" ? "bfloat16" : "float32";
  job.training.seq_len = length;
  job.training.global_batch_size = 2;  // two microbatches
  job.training.local_batch_size = 1;
  const at::ScalarType compute = dtype == "float64"   ? at::kDouble
                                 : dtype == "float32" ? at::kFloat
                                                      : at::kBFloat16;
  return first_step(job, model_of(family, compute, device, length), LongSource(length), device);
}

/// The largest relative L2 difference over all parameters, and where.
std::pair<double, std::string> worst(const FirstStep& found, const FirstStep& expected) {
  std::pair<double, std::string> most{0, ""};
  for (const auto& [name, gradient] : expected.gradients) {
    const double norm = gradient.norm().item<double>();
    const double error =
        (found.gradients.at(name) - gradient).norm().item<double>() / std::max(norm, 1e-30);
    if (!(error <= most.first)) most = {error, name};
  }
  return most;
}

class FamilyGradients : public testing::TestWithParam<const char*> {};

TEST_P(FamilyGradients, AreAsCloseAsTheHosts) {
  const std::string family = GetParam();
  const FirstStep exact = result_of(family, "float64", at::kCPU);
  struct Row {
    const char* dtype;
    double factor, slack;  ///< of the host's own error, and beside it
  };
  for (const Row row :
       {Row{"float64", 0, 1e-9}, Row{"float32", 4, 1e-6}, Row{"bfloat16", 2, 2e-3}}) {
    const double host =
        row.factor > 0 ? worst(result_of(family, row.dtype, at::kCPU), exact).first : 0;
    const FirstStep result = result_of(family, row.dtype, test_device());
    const auto [error, where] = worst(result, exact);
    std::printf("@ %s.%s: %.3e relative\n@ %s.%s.host: %.3e relative\n", family.c_str(), row.dtype,
                error, family.c_str(), row.dtype, host);
    std::fflush(stdout);
    EXPECT_LE(error, row.factor * host + row.slack)
        << family << " in " << row.dtype << ": " << where;
    EXPECT_NEAR(result.loss, exact.loss,
                (row.dtype == std::string("bfloat16") ? 2e-2 : 1e-5) * exact.loss);
  }
}

INSTANTIATE_TEST_SUITE_P(Each, FamilyGradients,
                         testing::Values("llama3", "qwen3", "qwen3_moe", "mixtral", "deepseek_v3",
                                         "gpt_oss"),
                         [](const auto& each) { return std::string(each.param); });

}  // namespace
}  // namespace tessera::test

int main(int argc, char** argv) { return tessera::test::run_ranks(argc, argv); }
