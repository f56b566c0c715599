// SPDX-License-Identifier: Apache-2.0
// Gradients in bfloat16 of a microbatch with thousands of equal tokens: whatever adds them up one
// after the other in bfloat16 stops at 256 of them.
#include <gtest/gtest.h>

#include <map>

#include "mpi/comm/mpi_main.hpp"
#include "mpi/train/first_step.hpp"
#include "mpi/train/gradient_case.hpp"
#include "mpi/train/place.hpp"
#include "mpi/train/tiny_model.hpp"
#include "support/relative_distance.hpp"

namespace tessera::test {
namespace {

/// The tokens of UnevenSource, of which three in four are replaced by one.
class RepetitiveSource final : public data::SampleSource {
 public:
  std::int64_t seq_len() const override { return tokens_.seq_len(); }
  std::optional<std::int64_t> sample_limit() const override { return std::nullopt; }
  void read(std::int64_t sample, std::span<std::int32_t> inputs,
            std::span<std::int32_t> labels) const override {
    tokens_.read(sample, inputs, labels);
    for (std::int32_t& token : inputs) token = token % 4 == 0 ? token : 5;
  }

 private:
  UnevenSource tokens_;
};

/// By parameter, of one microbatch of 4096 tokens on one rank.
std::map<std::string, at::Tensor> gradients_in(const std::string& dtype, const GradientCase& of,
                                               at::Device device) {
  GradientCase row = of;
  row.dtype = dtype;
  config::JobConfig job = job_of(row);
  job.training.global_batch_size = job.training.local_batch_size = 256;
  return first_step(job, model_of(row, device), RepetitiveSource(), device).gradients;
}

TEST(RepetitiveText, GradientsInBfloat16AreThoseInFloat32) {
  const at::Device device = Place(world()).device;
  GradientCase tied, qwen3, plain;
  tied.tied = true;
  qwen3.family = "qwen3";
  for (const GradientCase& row : {plain, tied, qwen3}) {
    const auto expected = gradients_in("float32", row, at::kCPU);
    for (const auto& [name, gradient] : gradients_in("bfloat16", row, device)) {
      EXPECT_LE(relative_distance(gradient, expected.at(name)), 4e-2) << row.name() << ": " << name;
    }
  }
}

}  // namespace
}  // namespace tessera::test
