// SPDX-License-Identifier: Apache-2.0
#include "mpi/train/tiny_model.hpp"

#include "tessera/kernels/philox.hpp"
#include "tessera/model_spec/families.hpp"

namespace tessera::test {

model::DecoderShape dense_shape(bool tied, std::int64_t kv_heads) {
  model::DecoderShape shape;
  shape.name = tied ? "tiny tied" : "tiny";
  shape.dim = 20;  // rows that 8 ranks cannot share evenly: short and empty shards
  shape.layers = 6;
  shape.heads = 8;
  shape.kv_heads = kv_heads;
  shape.head_dim = 4;
  shape.hidden = 40;
  shape.vocab = 48;
  shape.tied = tied;
  return shape;
}

model::Model tiny_model(bool tied, at::ScalarType dtype, std::int64_t kv_heads, at::Device device) {
  return model::make_decoder(dense_shape(tied, kv_heads), 16, dtype, device);
}

namespace {

void make_latent(model::DecoderShape& shape) {
  shape.family = model::Family::deepseek_v3;
  shape.latent = model::LatentAttention{10, 8, 4, 4, 6};
  shape.yarn =
      model::Yarn{.factor = 4, .beta_fast = 4, .original_max_position = 8, .mscale_all_dim = 0.7};
  shape.mixture->shared = 1;
  shape.mixture->first_dense = 1;
  shape.mixture->balance_rate = 0.01;
  model::RoutingRule& rule = shape.mixture->routing;
  rule.score = model::ScoreFunction::sigmoid;
  rule.groups = 4;
  rule.kept_groups = 2;
  rule.scale = 2.5;
}

void make_gpt_oss(model::DecoderShape& shape) {
  shape.family = model::Family::gpt_oss;
  shape.kv_heads = 4;
  shape.attention_biases = shape.sinks = true;
  shape.window = 5;
  shape.mixture->biased = true;
  shape.mixture->clamped = model::ClampedGate{};
  shape.mixture->balance_rate = 0.01;
}

}  // namespace

model::DecoderShape tiny_shape(const std::string& family) {
  model::DecoderShape shape;
  shape.name = "tiny " + family;
  shape.dim = 20;
  shape.layers = 4;
  shape.heads = shape.kv_heads = 8;
  shape.head_dim = 4;
  shape.hidden = 40;
  shape.vocab = 48;
  shape.rope_scaling.reset();
  if (family != "qwen3") {
    shape.mixture.emplace();
    shape.mixture->routing.experts = 8;
    shape.mixture->routing.top_k = 3;
    shape.mixture->routing.normalise = true;
    shape.mixture->hidden = 16;
  }
  if (family.starts_with("qwen3")) {
    shape.family = model::Family::qwen3;
    shape.qk_norm = true;
    shape.kv_heads = 2;
    shape.tied = family == "qwen3";
  }
  if (family == "qwen3_moe") {
    shape.mixture->auxiliary = 0.1;
    shape.mixture->z = 0.01;
  }
  if (family == "mixtral") {
    shape.family = model::Family::mixtral;
    shape.mixture->routing.experts = 4;
    shape.mixture->routing.before_experts = true;
  }
  if (family == "deepseek_v3") make_latent(shape);
  if (family == "gpt_oss") make_gpt_oss(shape);
  return shape;
}

model::Model tiny_family(const std::string& family, at::ScalarType dtype, at::Device device) {
  return model::make_decoder(tiny_shape(family), 16, dtype, device);
}

model::Model even_model(bool tied, at::ScalarType type, bool latent, std::int64_t kv_heads,
                        at::Device device) {
  model::DecoderShape shape = latent ? tiny_shape("deepseek_v3") : dense_shape(tied, kv_heads);
  shape.dim = 32;
  shape.hidden = 48;
  if (kv_heads < 8) shape.head_dim = 16;
  if (latent) {
    shape.latent = model::LatentAttention{16, 12, 4, 4, 6};
    shape.mixture->routing.experts = 16;
    shape.mixture->hidden = 32;
  }
  return model::make_decoder(shape, 16, type, device);
}

model::Model block_model(std::int64_t dim, bool tied, bool latent, std::int64_t kv_heads,
                         at::Device device) {
  model::DecoderShape shape = latent ? tiny_shape("deepseek_v3") : dense_shape(tied, kv_heads);
  shape.layers = 3;
  shape.dim = shape.hidden = shape.vocab = dim;
  shape.head_dim = 32;
  if (latent) {
    shape.latent = model::LatentAttention{32, 32, 32, 32, 32};
    shape.mixture->routing.experts = 32;
    shape.mixture->hidden = dim > 128 ? dim : 64;
  }
  return model::make_decoder(shape, 16, at::kDouble, device);
}

void UnevenSource::read(std::int64_t sample, std::span<std::int32_t> inputs,
                        std::span<std::int32_t> labels) const {
  const kernels::Philox random{1, 2};
  const auto token = [&](std::size_t t) {
    return static_cast<std::int32_t>(random.block(static_cast<std::uint64_t>(sample) * 64 + t)[0] %
                                     48);
  };
  for (std::size_t t = 0; t < inputs.size(); ++t) {
    inputs[t] = token(t);
    const bool ignored = sample % 7 == 3 || t < static_cast<std::size_t>(sample % 5);
    labels[t] = ignored ? -100 : token(t + 1);
  }
}

void EvenSource::read(std::int64_t sample, std::span<std::int32_t> inputs,
                      std::span<std::int32_t> labels) const {
  tokens_.read(sample, inputs, labels);
  for (std::int32_t& label : labels) label = label < 0 ? 1 : label;
}

config::JobConfig tiny_job(const std::string& dtype) {
  config::JobConfig job;
  job.training.dtype = dtype;
  job.training.mixed_precision_param = dtype == "bfloat16" ? "bfloat16" : "float32";
  job.training.seq_len = 16;
  job.training.global_batch_size = 16;
  job.training.steps = 4;
  job.lr_scheduler.warmup_steps = 1;
  job.activation_checkpoint.mode = "none";
  return job;
}

}  // namespace tessera::test
