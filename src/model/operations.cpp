// SPDX-License-Identifier: Apache-2.0
#include "tessera/model/operations.hpp"

#include <cmath>
#include <limits>

#include "tessera/kernels/accumulation_type.hpp"
#include "tessera/kernels/attention_part.hpp"
#include "tessera/kernels/grouped_mm.hpp"
#include "tessera/kernels/matrix_product.hpp"

namespace tessera::model {
namespace {

using at::Tensor;

/// [S, S'] true where a query looks: the last query is at the last key's position.
Tensor visible(const Attention& input) {
  const std::int64_t queries = input.q.size(1), keys = input.k.size(1);
  const auto options = at::TensorOptions(at::kLong).device(input.q.device());
  const Tensor query = at::arange(keys - queries, keys, options).unsqueeze(1),
               key = at::arange(keys, options);
  const Tensor causal = key <= query;
  return input.window > 0 ? causal.logical_and(key > query - input.window) : causal;
}

/// Softmax over the keys and one logit more, the head's sink, in at least float32; all products are
/// kept for backward.
Tensor attention_with_sinks(const Attention& input, double scale) {
  const std::int64_t heads = input.q.size(2), group = heads / input.k.size(2);
  const auto per_head = [&](const Tensor& x) {
    return x.transpose(1, 2).repeat_interleave(group, 1);
  };
  const Tensor logits =
      kernels::matmul(input.q.transpose(1, 2), per_head(input.k).transpose(2, 3)) * scale;
  const at::ScalarType wide = kernels::accumulation_type(logits);
  const Tensor masked = logits.to(wide).masked_fill(visible(input).logical_not(),
                                                    -std::numeric_limits<double>::infinity());
  const Tensor sinks =
      input.sinks.to(wide).view({1, -1, 1, 1}).expand({logits.size(0), -1, logits.size(2), 1});
  const Tensor weights = at::softmax(at::cat({masked, sinks}, 3), 3).narrow(3, 0, logits.size(3));
  return kernels::matmul(weights.to(input.v.scalar_type()), per_head(input.v)).transpose(1, 2);
}

/// LibTorch takes its flash attention or that of cuDNN for widths of keys and values that they
/// know. Its other ways keep all scores, or are slower than flash attention with padded values.
bool flash_is_better(const kernels::AttentionPart& part) {
  if (part.mask.defined() || !kernels::attends_in_bands(part)) return false;
  const at::SDPBackend choice = kernels::library_kernel(part);
  return choice != at::SDPBackend::flash_attention && choice != at::SDPBackend::cudnn_attention;
}

Tensor by_library(const kernels::AttentionPart& part, const std::optional<Tensor>& mask) {
  const bool grouped = part.q.size(2) != part.k.size(2);
  return at::scaled_dot_product_attention(part.q.transpose(1, 2), part.k.transpose(1, 2),
                                          part.v.transpose(1, 2), mask, 0.0, part.causal,
                                          part.scale, grouped)
      .transpose(1, 2);
}

}  // namespace

std::vector<Tensor> Operations::products(const Tensor& x, std::span<const Weight> weights) const {
  std::vector<Tensor> result;
  for (const Weight& weight : weights) result.push_back(kernels::linear(x, weight.value));
  return result;
}

std::function<Tensor()> Operations::product_again(const Tensor& x, const Weight& weight) const {
  return [x, weight = weight.value] { return kernels::linear(x, weight); };
}

Tensor Operations::expert_product(const Tensor& x, const Weight& weight,
                                  const Tensor& groups) const {
  return kernels::grouped_mm(x, weight.value, groups);
}

std::function<Tensor()> Operations::expert_product_again(const Tensor& x, const Weight& weight,
                                                         const Tensor& groups) const {
  return [x, weight = weight.value, groups] { return kernels::grouped_mm(x, weight, groups); };
}

Tensor Operations::attention(const Attention& input) const {
  const std::int64_t queries = input.q.size(1), keys = input.k.size(1);
  const double scale =
      input.scale > 0 ? input.scale : 1 / std::sqrt(static_cast<double>(input.q.size(3)));
  if (input.sinks.defined()) return attention_with_sinks(input, scale);
  const bool windowed = input.window > 0 && input.window < keys;
  const bool causal = queries > 1 && queries == keys && !windowed;
  const auto mask =
      causal || (queries == 1 && !windowed) ? std::nullopt : std::optional<Tensor>(visible(input));
  const kernels::AttentionPart part{.q = input.q,
                                    .k = input.k,
                                    .v = input.v,
                                    .scale = scale,
                                    .causal = causal,
                                    .mask = mask.value_or(Tensor())};
  const bool own = input.q.is_cpu() || input.q.is_meta() || flash_is_better(part);
  return own ? kernels::attention(part) : by_library(part, mask);
}

void Operations::remakable(const Tensor&, std::function<Tensor()>) const {}

const Operations& plain_operations() {
  static const Operations plain;
  return plain;
}

}  // namespace tessera::model
