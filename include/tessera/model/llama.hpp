// Llama 3 (https://arxiv.org/abs/2407.21783): pre-norm RMSNorm, grouped-query attention with RoPE, SwiGLU.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tessera/model/model.hpp"

namespace tessera::model {

/// RoPE frequency scaling of Llama 3.1 ("llama3" in Hugging Face's words).
struct RopeScaling {
  double factor = 8, low_freq_factor = 1, high_freq_factor = 4;
  std::int64_t original_max_position = 8192;
};

struct LlamaShape {
  std::string name = "llama3 debugmodel";
  std::int64_t dim = 256, layers = 6, heads = 16, kv_heads = 16, head_dim = 16, hidden = 768, vocab = 2048;
  double norm_eps = 1e-5;
  double rope_theta = 500000;
  std::optional<RopeScaling> rope_scaling = RopeScaling{};
  bool tied = false;
};

/// TorchTitan's feed-forward size: int(8 dim / 3), times the multiplier, rounded up to a multiple.
std::int64_t llama_hidden(std::int64_t dim, std::int64_t multiple_of, std::optional<double> multiplier);

/// TorchTitan's flavors: debugmodel, 1B, 3B, 8B, 70B, 405B. `vocab` replaces the flavor's when given.
/// Throws Error(usage) that lists the flavors.
LlamaShape llama_flavor(const std::string& flavor, std::optional<std::int64_t> vocab);
std::vector<std::string> llama_flavors();

/// A Hugging Face config.json with model_type "llama", in the spelling of transformers 4 or 5; what the file lacks
/// takes Hugging Face's default. Throws Error(usage) that names the file and the key.
LlamaShape llama_from_hf_config(const std::filesystem::path& file);

/// The config.json (transformers 4 spelling, which 5 reads too) that describes this shape; `dtype` is the weights'
/// name, "f32" etc.
std::string hf_config_of(const LlamaShape& shape, const std::string& dtype);

/// Cells, parameters and units. Angles are tabulated for `max_positions` positions, in the precision of `dtype`
/// (float64 for float64, else float32), on `device`.
Model make_llama(const LlamaShape& shape, std::int64_t max_positions, torch::ScalarType dtype,
                 torch::Device device = torch::kCPU);

}  // namespace tessera::model
