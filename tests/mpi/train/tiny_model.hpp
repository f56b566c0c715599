// SPDX-License-Identifier: Apache-2.0
// A Llama small enough to be trained hundreds of times in a test, and data with an uneven number of
// valid labels.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include "tessera/config/job_config.hpp"
#include "tessera/data/sample_source.hpp"
#include "tessera/model/model.hpp"

namespace tessera::test {

/// 6 layers, 8 heads: divisible by every degree that 8 ranks can form. Vocabulary 48, so that it is
/// not a power of two.
model::DecoderShape dense_shape(bool tied, std::int64_t kv_heads);
model::Model tiny_model(bool tied, at::ScalarType dtype, std::int64_t kv_heads = 8,
                        at::Device device = at::kCPU);

/// As tiny_model() with matrices whose sizes are multiples of 16; `latent`:
/// as tiny_family("deepseek_v3") with such matrices, but for one in each layer.
model::Model even_model(bool tied, at::ScalarType type, bool latent, std::int64_t kv_heads,
                        at::Device device);

/// The same in float64 with 3 layers, whose matrices have a multiple of dim / 4 rows and columns on
/// each of up to 4 tensor-parallel ranks: dim is 128 for blocks of MX.
model::Model block_model(std::int64_t dim, bool tied, bool latent, std::int64_t kv_heads,
                         at::Device device);

/// The same size with 4 layers, of another family: qwen3, qwen3_moe (auxiliary and z loss),
/// mixtral, deepseek_v3 (latent attention, groups, a shared expert, one dense layer), gpt_oss. 8
/// experts; mixtral 4, fewer than ranks.
model::DecoderShape tiny_shape(const std::string& family);
model::Model tiny_family(const std::string& family, at::ScalarType dtype,
                         at::Device device = at::kCPU);

/// Sequences of 16 tokens drawn from a counter; sample n ignores n % 5 of its labels, and every
/// label if n % 7 == 3.
class UnevenSource final : public data::SampleSource {
 public:
  std::int64_t seq_len() const override { return 16; }
  std::optional<std::int64_t> sample_limit() const override { return std::nullopt; }
  void read(std::int64_t sample, std::span<std::int32_t> inputs,
            std::span<std::int32_t> labels) const override;
  /// Three documents, of which one begins at a place of the sample's own.
  std::vector<std::int64_t> document_starts(std::int64_t sample) const override {
    return {0, 3 + sample % 6, 11};
  }
};

/// The same tokens. As many labels count in each step: all of them.
class EvenSource final : public data::SampleSource {
 public:
  std::int64_t seq_len() const override { return tokens_.seq_len(); }
  std::optional<std::int64_t> sample_limit() const override { return std::nullopt; }
  void read(std::int64_t sample, std::span<std::int32_t> inputs,
            std::span<std::int32_t> labels) const override;
  std::vector<std::int64_t> document_starts(std::int64_t sample) const override {
    return tokens_.document_starts(sample);
  }

 private:
  UnevenSource tokens_;
};

/// A job with the tiny model's sizes, no warm-up, and everything else by default.
config::JobConfig tiny_job(const std::string& dtype);

}  // namespace tessera::test
