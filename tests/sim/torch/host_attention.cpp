// LibTorch's attention takes another algorithm on a GPU than on the host, whose bits differ. With the host's kernels it
// takes the host's.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <torch/library.h>

#include "fallback.hpp"
#include "host_kernels.hpp"
#include "tessera/kernels/operation.hpp"

namespace tessera::sim {
namespace {

using at::Tensor;

/// The dispatcher as the program's own threads have it, with autograd: tasks run below it.
struct WithAutograd {
  c10::impl::ForceDispatchKeyGuard keys{c10::default_included_set, c10::default_excluded_set};
  at::AutoGradMode gradients{true};
};

/// Of q, k, v, and a mask where there is one. Autograd's graph of the twins is kept from forward to backward.
class HostAttention final : public kernels::Operation {
 public:
  HostAttention(bool causal, std::optional<double> scale, bool grouped)
      : causal_(causal), scale_(scale), grouped_(grouped) {}

  std::vector<Tensor> forward(kernels::Kept& kept, std::span<const Tensor> inputs) override {
    kept.save({inputs.begin(), inputs.end()});  // the twins do not own their bytes
    return run_on_host(name, {inputs.begin(), inputs.end()}, [&](const std::vector<Tensor>& twins) {
      const WithAutograd with_autograd;
      for (std::size_t i = 0; i < 3; ++i) twins_.push_back(twins[i].detach().requires_grad_(true));
      const auto mask = twins.size() > 3 ? std::optional(twins[3]) : std::nullopt;
      out_ = at::scaled_dot_product_attention(twins_[0], twins_[1], twins_[2], mask, 0.0, causal_, scale_, grouped_);
      return std::vector<Tensor>{out_.detach()};
    });
  }

  std::vector<Tensor> backward(kernels::Kept& kept, std::vector<Tensor> gradients) override {
    std::vector<Tensor> inputs = kept.saved();
    const std::size_t count = inputs.size();
    inputs.insert(inputs.begin(), gradients[0]);
    auto results = run_on_host(name, inputs, [&](const std::vector<Tensor>& twins) {
      const WithAutograd with_autograd;
      kernels::run_backward({out_}, {twins[0]});
      return std::vector<Tensor>{twins_[0].grad(), twins_[1].grad(), twins_[2].grad()};
    });
    results.resize(count);  // none for the mask
    return results;
  }

 private:
  static constexpr const char* name = "aten::scaled_dot_product_attention";
  bool causal_;
  std::optional<double> scale_;
  bool grouped_;
  std::vector<Tensor> twins_;
  Tensor out_;
};

Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const std::optional<Tensor>& mask, double dropout,
                 bool causal, std::optional<double> scale, bool grouped) {
  TORCH_CHECK(dropout == 0, "the simulated attention has no dropout");
  std::vector<Tensor> inputs{q, k, v};
  if (mask.has_value() && mask->defined()) inputs.push_back(*mask);
  return kernels::apply(HostAttention(causal, scale, grouped), std::move(inputs));
}

}  // namespace

void use_host_attention() {
  static torch::Library library(torch::Library::IMPL, "aten", c10::DispatchKey::AutogradCUDA, __FILE__, __LINE__);
  library.impl("scaled_dot_product_attention", &attention);
}

}  // namespace tessera::sim
