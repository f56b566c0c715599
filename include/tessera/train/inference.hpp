// SPDX-License-Identifier: Apache-2.0
// A trained model in one process: logits and text.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "tessera/data/tokenizer.hpp"
#include "tessera/mesh/device_mesh.hpp"
#include "tessera/model/model.hpp"
#include "tessera/parallel/stage.hpp"
#include "tessera/plan/job_plan.hpp"

namespace tessera::train {

struct Sampling {
  double temperature = 0;  ///< 0 = the most likely token
  std::int64_t top_k = 0;  ///< draw among the k most likely; 0 = all
  std::uint64_t seed = 0;
};

class Inference {
 public:
  /// The planned model for at most `positions` positions, with weights as load_newest_weights()
  /// finds them. `tokenizer`: null if there is none; generate() chooses no token beyond it. Throws
  /// Error(checkpoint) if there are no weights, and Error(data) for a tokenizer with more ids than
  /// the model.
  Inference(const plan::InferencePlan& plan, std::int64_t positions,
            const data::Tokenizer* tokenizer);

  const model::Model& model() const { return model_; }
  /// tokens [batch, seq] int64 -> logits [batch, seq, vocab] float32 (float64 for a float64 model).
  at::Tensor logits(const at::Tensor& tokens);
  /// `count` tokens after `prompt`, with a key-value cache, or fewer: the first of `stops` is the
  /// last. Throws Error(data) for an empty prompt or tokens beyond the vocabulary, Error(usage)
  /// when prompt and count exceed `positions`, and Error(nonfinite) for logits that are not finite.
  std::vector<std::int32_t> generate(const std::vector<std::int32_t>& prompt, std::int64_t count,
                                     const Sampling& sampling,
                                     const std::vector<std::int32_t>& stops = {});

 private:
  at::Tensor run(const at::Tensor& tokens, std::int64_t batch, std::int64_t position,
                 model::KeyValueCache* cache);

  std::int64_t positions_, tokenizer_vocab_;
  at::Tensor absent_;  ///< see absent_ids()
  mesh::DeviceMesh mesh_;
  at::Device device_;
  model::Model model_;
  parallel::StageOptions options_;
  std::optional<parallel::GradientReducer> reducer_;
  std::optional<parallel::Stage> stage_;
};

}  // namespace tessera::train
