// SPDX-License-Identifier: Apache-2.0
#include "operator_cases.hpp"

namespace tessera::sim::test {

using at::Tensor;

std::vector<Case> arithmetic() {
  return {
      {"add",
       [](const Inputs& in) {
         return std::vector{in.real({3, 5}) + in.real({5})};
       }},
      {"add_scalar",
       [](const Inputs& in) {
         return std::vector{in.real({3, 5}) * 2 + 1.5};
       }},
      {"add_host_scalar",
       [](const Inputs& in) {
         return std::vector{in.real({3, 5}) * at::scalar_tensor(0.3, at::kDouble)};
       }},
      {"in_place",
       [](const Inputs& in) {
         return std::vector{in.real({4, 4}).mul_(in.real({4, 4})).add_(1, 0.5)};
       }},
      {"in_place_on_view",
       [](const Inputs& in) {
         Tensor x = in.real({6, 8});
         x.narrow(1, 2, 3).add_(in.real({6, 3}));
         x.select(0, 1).zero_();
         return std::vector{x};
       }},
      {"transposed",
       [](const Inputs& in) {
         return std::vector{in.real({6, 8}).t() - in.real({8, 6})};
       }},
      {"compare",
       [](const Inputs& in) {
         return std::vector{in.real({9}) > 0, in.real({9}).eq(in.real({9}))};
       }},
      {"where",
       [](const Inputs& in) {
         return std::vector{at::where(in.real({9}) > 0, in.real({9}), in.real({9}))};
       }},
      {"masked_fill",
       [](const Inputs& in) {
         return std::vector{in.real({7, 3}).masked_fill(in.real({7, 3}) > 0, -1e9)};
       }},
      {"pow_exp",
       [](const Inputs& in) {
         return std::vector{at::pow(in.real({9}).abs(), 1.7), in.real({9}).exp()};
       }},
      {"clamp",
       [](const Inputs& in) {
         return std::vector{in.real({9}).clamp(-0.5, 0.5), in.real({9}).sigmoid()};
       }},
      {"gelu_silu",
       [](const Inputs& in) {
         return std::vector{at::gelu(in.real({99})), at::silu(in.real({99}))};
       }},
      {"casts",
       [](const Inputs& in) {
         return std::vector{
             in.real({33}).to(at::kBFloat16), in.real({33}).to(at::kHalf).to(at::kDouble),
             (in.real({33}) * 9).to(at::kLong), in.real({33}, at::kBFloat16).to(at::kFloat)};
       }},
      {"half_arithmetic",
       [](const Inputs& in) {
         return std::vector{in.real({33}, at::kBFloat16) * in.real({33}, at::kBFloat16)};
       }},
      {"outer_logaddexp",
       [](const Inputs& in) {
         return std::vector{at::outer(in.real({4}), in.real({5})),
                            at::logaddexp(in.real({5}), in.real({5}))};
       }},
      {"foreach",
       [](const Inputs& in) {
         std::vector<Tensor> x{in.real({4}), in.real({2, 3})};
         at::_foreach_mul_(x, 2.0);
         return x;
       }},
      {"fused_adamw",
       [](const Inputs& in) {
         std::vector<Tensor> p{in.real({40})}, g{in.real({40})}, m{in.real({40})},
             v{in.real({40}).abs()}, steps{at::ones({}, in.options())};
         at::_fused_adamw_(p, g, m, v, {}, steps, 1e-3, 0.9, 0.99, 0.1, 1e-8, false, false);
         return std::vector{p[0], m[0], v[0]};
       }},
  };
}

std::vector<Case> reductions() {
  return {
      {"sum",
       [](const Inputs& in) {
         return std::vector{in.real({40, 9}).sum(), in.real({40, 9}).sum(0),
                            in.real({40, 9}).sum(1, true)};
       }},
      {"mean_var",
       [](const Inputs& in) {
         return std::vector{in.real({40, 9}).mean(1), in.real({40, 9}).var(0)};
       }},
      {"max_argmax",
       [](const Inputs& in) {
         return std::vector{in.real({40, 9}).amax(1), in.real({40, 9}).argmax(1)};
       }},
      {"norm",
       [](const Inputs& in) {
         return std::vector{at::linalg_vector_norm(in.real({40, 9})), in.real({40}).norm()};
       }},
      {"logsumexp",
       [](const Inputs& in) {
         return std::vector{at::logsumexp(in.real({4, 9}), {1}, true)};
       }},
      {"softmax",
       [](const Inputs& in) {
         return std::vector{at::softmax(in.real({4, 9}), -1), at::log_softmax(in.real({4, 9}), 1)};
       }},
      {"cumsum",
       [](const Inputs& in) {
         return std::vector{in.real({40, 9}).cumsum(0)};
       }},
      {"topk_sort",
       [](const Inputs& in) {
         const auto [values, indices] = at::topk(in.real({4, 9}), 3, 1);
         const auto [sorted, order] = in.real({4, 9}).sort(1, true);
         return std::vector{values, indices, sorted, order};
       }},
      {"any_all",
       [](const Inputs& in) {
         return std::vector{(in.real({9}) > 0).any(), (in.real({9}) > -99).all()};
       }},
      {"isfinite",
       [](const Inputs& in) {
         return std::vector{at::isfinite(in.real({9})), at::isnan(in.real({9}))};
       }},
      {"layer_norm",
       [](const Inputs& in) {
         return std::vector{at::layer_norm(in.real({4, 8}), {8}, in.real({8}), in.real({8}))};
       }},
      {"losses",
       [](const Inputs& in) {
         return std::vector{at::mse_loss(in.real({4, 8}), in.real({4, 8})),
                            at::cross_entropy_loss(in.real({4, 8}), in.whole({4}, 8))};
       }},
      {"numbers",
       [](const Inputs& in) {
         const Tensor x = in.real({9});
         return std::vector{at::scalar_tensor(x[3].item<float>()),
                            at::scalar_tensor(at::equal(x, x) ? 1 : 0)};
       }},
  };
}

std::vector<Case> products() {
  return {
      {"mm",
       [](const Inputs& in) {
         return std::vector{in.real({17, 33}).mm(in.real({33, 9}))};
       }},
      {"mm_transposed",
       [](const Inputs& in) {
         return std::vector{in.real({33, 17}).t().mm(in.real({33, 9}))};
       }},
      {"mm_out_part",
       [](const Inputs& in) {
         Tensor out = at::zeros({17, 20}, in.options());
         Tensor part = out.narrow(1, 3, 9);
         at::mm_out(part, in.real({17, 33}), in.real({33, 9}));
         return std::vector{out};
       }},
      {"addmm",
       [](const Inputs& in) {
         return std::vector{in.real({17, 9}).addmm_(in.real({17, 33}), in.real({33, 9}))};
       }},
      {"bmm_baddbmm",
       [](const Inputs& in) {
         return std::vector{in.real({3, 4, 5}).bmm(in.real({3, 5, 6})),
                            in.real({3, 4, 6}).baddbmm_(in.real({3, 4, 5}), in.real({3, 5, 6}))};
       }},
      {"linear",
       [](const Inputs& in) {
         return std::vector{at::linear(in.real({2, 3, 8}), in.real({5, 8}), in.real({5}))};
       }},
      {"matmul",
       [](const Inputs& in) {
         return std::vector{at::matmul(in.real({2, 3, 4, 5}), in.real({2, 3, 5, 4}))};
       }},
      {"einsum",
       [](const Inputs& in) {
         return std::vector{at::einsum("bij,bjk->bik", {in.real({2, 3, 4}), in.real({2, 4, 5})})};
       }},
      {"grouped_mm",
       [](const Inputs& in) {
         const Tensor ends = at::tensor({3, 7, 8}, at::kInt).to(in.device());
         return std::vector{at::_grouped_mm(in.real({8, 16}, at::kBFloat16),
                                            in.real({3, 16, 8}, at::kBFloat16), ends)};
       }},
  };
}

}  // namespace tessera::sim::test
