// SPDX-License-Identifier: Apache-2.0
#include "tessera/kernels/attention_part.hpp"

#include <ATen/ops/_fused_sdp_choice.h>

#include "backend.hpp"
#include "tessera/kernels/operation.hpp"

namespace tessera::kernels {
namespace {

using at::Tensor;

/// Of q, k and v; `part_` has the rest.
class WholeAttention final : public Operation {
 public:
  explicit WholeAttention(const AttentionPart& part) : part_(part) {
    part_.q = part_.k = part_.v = Tensor();
  }

  std::vector<Tensor> forward(Kept& kept, std::span<const Tensor> inputs) override {
    const auto [out, logsumexp] = attention_part(with(inputs));
    kept.save({inputs[0], inputs[1], inputs[2], out, logsumexp});
    return {out};
  }
  std::vector<Tensor> backward(Kept& kept, std::vector<Tensor> gradients) override {
    const auto saved = kept.saved();
    const auto [q, k, v] = attention_part_backward(with(saved), {saved[3], saved[4]}, gradients[0]);
    return {q, k, v};
  }

 private:
  AttentionPart with(std::span<const Tensor> inputs) const {
    AttentionPart part = part_;
    part.q = inputs[0];
    part.k = inputs[1];
    part.v = inputs[2];
    return part;
  }

  AttentionPart part_;
};

}  // namespace

Tensor attention(const AttentionPart& part) {
  return apply(WholeAttention(part), {part.q, part.k, part.v});
}

at::SDPBackend library_kernel(const AttentionPart& part) {
  return static_cast<at::SDPBackend>(at::_fused_sdp_choice(
      part.q.transpose(1, 2), part.k.transpose(1, 2), part.v.transpose(1, 2), std::nullopt, 0.0,
      part.causal, part.scale, part.q.size(2) != part.k.size(2)));
}

bool attends_in_bands(const AttentionPart& part) {
  const Backend& backend = backend_of(part.q);
  return backend.attends_in_bands != nullptr && backend.attends_in_bands(part);
}

AttentionValue attention_part(const AttentionPart& part) {
  const at::NoGradGuard no_grad;
  return backend_of(part.q).attention_part(part);
}

AttentionGradients attention_part_backward(const AttentionPart& part, const AttentionValue& merged,
                                           const Tensor& grad_out) {
  const at::NoGradGuard no_grad;
  return backend_of(part.q).attention_part_backward(part, merged, grad_out);
}

}  // namespace tessera::kernels
