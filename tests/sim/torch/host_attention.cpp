// SPDX-License-Identifier: Apache-2.0
// A model's attention is LibTorch's on a GPU, and own code on the host, whose bits differ. With the
// host's kernels, LibTorch's becomes that of the host.
#include <ATen/core/grad_mode.h>
#include <torch/library.h>

#include "fallback.hpp"
#include "host_kernels.hpp"
#include "tessera/kernels/attention_part.hpp"
#include "tessera/kernels/operation.hpp"

namespace tessera::sim {
namespace {

using at::Tensor;

/// The dispatcher as the program's own threads have it, with autograd: tasks run below it.
struct WithAutograd {
  c10::impl::ForceDispatchKeyGuard keys{c10::default_included_set, c10::default_excluded_set};
  at::AutoGradMode gradients{true};
};

/// Of q, k, v, and a mask where there is one. Backward computes forward once more: recompute may
/// have given the inputs other memory since, which a graph of twins would not see.
class HostAttention final : public kernels::Operation {
 public:
  HostAttention(bool causal, double scale) : causal_(causal), scale_(scale) {}

  std::vector<Tensor> forward(kernels::Kept& kept, std::span<const Tensor> inputs) override {
    kept.save({inputs.begin(), inputs.end()});
    return run_on_host(name, {inputs.begin(), inputs.end()},
                       [self = *this](const std::vector<Tensor>& twins) {
                         const WithAutograd with_autograd;
                         return std::vector<Tensor>{self.attend(leaves(twins), twins).detach()};
                       });
  }

  std::vector<Tensor> backward(kernels::Kept& kept, std::vector<Tensor> gradients) override {
    std::vector<Tensor> inputs = kept.saved();
    const std::size_t count = inputs.size();
    inputs.push_back(gradients[0]);
    auto results = run_on_host(name, inputs, [self = *this](std::vector<Tensor> twins) {
      const WithAutograd with_autograd;
      const Tensor gradient = twins.back();
      twins.pop_back();
      const std::vector<Tensor> of = leaves(twins);
      kernels::run_backward({self.attend(of, twins)}, {gradient});
      return std::vector<Tensor>{of[0].grad(), of[1].grad(), of[2].grad()};
    });
    results.resize(count);  // none for the mask
    return results;
  }

 private:
  static std::vector<Tensor> leaves(const std::vector<Tensor>& twins) {
    std::vector<Tensor> leaves;
    for (std::size_t i = 0; i < 3; ++i) leaves.push_back(twins[i].detach().requires_grad_(true));
    return leaves;
  }
  Tensor attend(const std::vector<Tensor>& qkv, const std::vector<Tensor>& twins) const {
    return kernels::attention({qkv[0].transpose(1, 2), qkv[1].transpose(1, 2),
                               qkv[2].transpose(1, 2), scale_, causal_,
                               twins.size() > 3 ? twins[3] : Tensor()})
        .transpose(1, 2);
  }

  static constexpr const char* name = "aten::scaled_dot_product_attention";
  bool causal_;
  double scale_;
};

Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v,
                 const std::optional<Tensor>& mask, double dropout, bool causal,
                 std::optional<double> scale, bool) {
  TORCH_CHECK(dropout == 0, "the simulated attention has no dropout");
  std::vector<Tensor> inputs{q, k, v};
  if (mask.has_value() && mask->defined()) inputs.push_back(*mask);
  return kernels::apply(HostAttention(causal, scale.value()), std::move(inputs));
}

}  // namespace

void use_host_attention() {
  static torch::Library library(torch::Library::IMPL, "aten", c10::DispatchKey::AutogradCUDA,
                                __FILE__, __LINE__);
  library.impl("scaled_dot_product_attention", &attention);
}

}  // namespace tessera::sim
