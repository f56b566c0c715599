// Each operator on the simulated GPU gives the host's bits.
#include <ATen/ATen.h>
#include <c10/core/CPUAllocator.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "sim/sim.hpp"

namespace tessera::sim {
namespace {

using at::Tensor;

/// The same inputs for every device, made on the host.
class Inputs {
 public:
  explicit Inputs(at::Device device) : device_(device) { at::manual_seed(11); }

  Tensor real(at::IntArrayRef shape, at::ScalarType type = at::kFloat) const {
    return at::randn(shape, at::kDouble).to(type).to(device_);
  }
  Tensor whole(at::IntArrayRef shape, std::int64_t below) const {
    return at::randint(below, shape, at::kLong).to(device_);
  }
  at::Device device() const { return device_; }
  at::TensorOptions options(at::ScalarType type = at::kFloat) const { return at::device(device_).dtype(type); }

 private:
  at::Device device_;
};

struct Case {
  std::string name;
  std::function<std::vector<Tensor>(const Inputs&)> run;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

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
      {"where", [](const Inputs& in) { return std::vector{at::where(in.real({9}) > 0, in.real({9}), in.real({9}))}; }},
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
         return std::vector{in.real({33}).to(at::kBFloat16), in.real({33}).to(at::kHalf).to(at::kDouble),
                            (in.real({33}) * 9).to(at::kLong), in.real({33}, at::kBFloat16).to(at::kFloat)};
       }},
      {"half_arithmetic",
       [](const Inputs& in) { return std::vector{in.real({33}, at::kBFloat16) * in.real({33}, at::kBFloat16)}; }},
      {"outer_logaddexp",
       [](const Inputs& in) {
         return std::vector{at::outer(in.real({4}), in.real({5})), at::logaddexp(in.real({5}), in.real({5}))};
       }},
      {"foreach",
       [](const Inputs& in) {
         std::vector<Tensor> x{in.real({4}), in.real({2, 3})};
         at::_foreach_mul_(x, 2.0);
         return x;
       }},
      {"fused_adamw",
       [](const Inputs& in) {
         std::vector<Tensor> p{in.real({40})}, g{in.real({40})}, m{in.real({40})}, v{in.real({40}).abs()},
             steps{at::ones({}, in.options())};
         at::_fused_adamw_(p, g, m, v, {}, steps, 1e-3, 0.9, 0.99, 0.1, 1e-8, false, false);
         return std::vector{p[0], m[0], v[0]};
       }},
  };
}

std::vector<Case> reductions() {
  return {
      {"sum",
       [](const Inputs& in) {
         return std::vector{in.real({40, 9}).sum(), in.real({40, 9}).sum(0), in.real({40, 9}).sum(1, true)};
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
         return std::vector{at::scalar_tensor(x[3].item<float>()), at::scalar_tensor(at::equal(x, x) ? 1 : 0)};
       }},
  };
}

std::vector<Case> indexing() {
  return {
      {"index_select",
       [](const Inputs& in) {
         return std::vector{in.real({9, 4}).index_select(0, in.whole({6}, 9))};
       }},
      {"gather_scatter",
       [](const Inputs& in) {
         const Tensor index = in.whole({4, 3}, 9);
         return std::vector{in.real({4, 9}).gather(1, index), in.real({4, 9}).scatter_add(1, index, in.real({4, 3}))};
       }},
      {"index",
       [](const Inputs& in) {
         return std::vector{in.real({9, 4}).index({in.whole({6}, 9)})};
       }},
      {"index_mask",
       [](const Inputs& in) {
         const Tensor x = in.real({9, 4});
         return std::vector{x.index({x > 0})};
       }},
      {"index_put",
       [](const Inputs& in) {
         Tensor x = in.real({9, 4});
         x.index_put_({in.whole({6}, 9)}, in.real({6, 4}), true);
         return std::vector{x};
       }},
      {"index_add",
       [](const Inputs& in) {
         return std::vector{in.real({9, 4}).index_add(0, in.whole({6}, 9), in.real({6, 4}))};
       }},
      {"nonzero_unique",
       [](const Inputs& in) {
         const auto [unique, inverse] = at::_unique(in.whole({20}, 5), true, true);
         return std::vector{(in.real({9}) > 0).nonzero(), unique, inverse};
       }},
      {"embedding",
       [](const Inputs& in) {
         return std::vector{at::embedding(in.real({9, 4}), in.whole({2, 3}, 9))};
       }},
      {"one_hot_bincount",
       [](const Inputs& in) {
         return std::vector{at::one_hot(in.whole({6}, 5), 5), at::bincount(in.whole({30}, 5), {}, 5)};
       }},
      {"searchsorted",
       [](const Inputs& in) { return std::vector{at::searchsorted(std::get<0>(in.real({20}).sort()), in.real({5}))}; }},
      {"cat_stack",
       [](const Inputs& in) {
         return std::vector{at::cat({in.real({2, 3}), in.real({4, 3})}), at::stack({in.real({3}), in.real({3})}, 1)};
       }},
      {"tril_flip_roll",
       [](const Inputs& in) {
         return std::vector{in.real({5, 5}).tril(), in.real({5}).flip(0), in.real({5}).roll(2)};
       }},
      {"repeat_expand",
       [](const Inputs& in) {
         return std::vector{in.real({2, 3}).repeat({2, 2}), in.real({3, 1}).expand({3, 4}) + 1,
                            in.real({2, 3}).repeat_interleave(3, 1)};
       }},
      {"permute_reshape",
       [](const Inputs& in) {
         return std::vector{in.real({2, 3, 4}).permute({2, 0, 1}).reshape({8, 3}),
                            in.real({24}).unfold(0, 5, 3).clone()};
       }},
      {"complex",
       [](const Inputs& in) {
         const Tensor z = at::view_as_complex(in.real({4, 3, 2}));
         return std::vector{at::view_as_real(z * z.conj()), at::view_as_real(at::complex(in.real({3}), in.real({3})))};
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
         return std::vector{at::_grouped_mm(in.real({8, 16}, at::kBFloat16), in.real({3, 16, 8}, at::kBFloat16), ends)};
       }},
  };
}

std::vector<Case> factories() {
  return {
      {"filled",
       [](const Inputs& in) {
         return std::vector{at::zeros({3}, in.options()), at::ones({3}, in.options()),
                            at::full({3}, 2.5, in.options())};
       }},
      {"arange",
       [](const Inputs& in) {
         return std::vector{at::arange(7, in.options(at::kLong)), at::arange(0, 1, 0.125, in.options())};
       }},
      {"eye_linspace",
       [](const Inputs& in) {
         return std::vector{at::eye(4, in.options()), at::linspace(0, 1, 5, in.options())};
       }},
      {"random",
       [](const Inputs& in) {
         at::manual_seed(5);
         return std::vector{at::randn({9}, in.options()), at::rand({9}, in.options()),
                            at::randint(100, {9}, in.options(at::kLong)), at::randperm(9, in.options(at::kLong))};
       }},
      {"like",
       [](const Inputs& in) {
         return std::vector{at::zeros_like(in.real({3, 2})), at::ones_like(in.real({3, 2}).t())};
       }},
      {"out_of_empty",
       [](const Inputs& in) {
         Tensor out = at::empty({0}, in.options());
         at::mul_out(out, in.real({3}), in.real({3}));
         Tensor range = at::empty({0}, in.options(at::kLong));
         at::arange_out(range, 5);
         return std::vector{out, range};
       }},
      {"resize_set",
       [](const Inputs& in) {
         Tensor x = in.real({4}), y = at::empty({0}, in.options());
         x.resize_({6}).narrow(0, 4, 2).zero_();
         y.set_(x);
         return std::vector{x, y};
       }},
  };
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const auto& part : {arithmetic(), reductions(), indexing(), products(), factories()})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

class Operators : public ::testing::TestWithParam<Case> {};

TEST_P(Operators, GiveTheHostsBits) {
  at::set_num_threads(1);
  const std::vector<Tensor> expected = GetParam().run(Inputs(at::kCPU)), got = GetParam().run(Inputs(at::kCUDA));
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].scalar_type(), expected[i].scalar_type()) << i;
    ASSERT_EQ(got[i].sizes(), expected[i].sizes()) << i;
    EXPECT_TRUE(at::equal(got[i].cpu(), expected[i])) << i << "\n" << got[i].cpu() << "\n" << expected[i];
  }
  EXPECT_TRUE(races().empty());
}

INSTANTIATE_TEST_SUITE_P(All, Operators, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name; });

TEST(Operators, StayOnTheDevice) {
  const Tensor x = at::ones({3}, at::kCUDA);
  EXPECT_TRUE((x + 1).is_cuda());
  EXPECT_TRUE(x.nonzero().is_cuda());
  EXPECT_TRUE(is_device_pointer((x + 1).data_ptr()));
}

TEST(Operators, RefuseHostTensorsBesideDeviceOnes) {
  const Tensor x = at::ones({3}, at::kCUDA);
  EXPECT_THROW(x + at::ones({3}), c10::Error);
  EXPECT_THROW(at::ones({2, 3}, at::kCUDA).mm(at::ones({3, 2})), c10::Error);
}

TEST(Operators, ThrowWhatTheHostThrows) {
  EXPECT_THROW(at::ones({2, 3}, at::kCUDA).mm(at::ones({2, 3}, at::kCUDA)), c10::Error);
  EXPECT_THROW(at::ones({3}, at::kCUDA).add_(at::ones({4}, at::kCUDA)), c10::Error);
}

TEST(Operators, NewMemoryIsPoison) {
  EXPECT_TRUE(at::empty({64}, at::device(at::kCUDA).dtype(at::kFloat)).isnan().all().item<bool>());
  EXPECT_TRUE(at::empty({64}, at::device(at::kCUDA).dtype(at::kLong)).eq(-1).all().item<bool>());
}

TEST(FlashAttention, IsTheHostsWithHeadsShared) {
  at::set_num_threads(1);
  const Inputs in(at::kCPU);
  const Tensor q = in.real({2, 4, 10, 16}, at::kBFloat16), k = in.real({2, 2, 10, 16}, at::kBFloat16),
               v = in.real({2, 2, 10, 16}, at::kBFloat16), grad = in.real({2, 4, 10, 16}, at::kBFloat16);
  const auto wide = [](const Tensor& x) { return x.repeat_interleave(2, 1); };
  const auto [out, log] = at::_scaled_dot_product_flash_attention_for_cpu(q, wide(k), wide(v), 0.0, true);
  const auto flash = at::_scaled_dot_product_flash_attention(q.cuda(), k.cuda(), v.cuda(), 0.0, true, false);
  EXPECT_TRUE(at::equal(std::get<0>(flash).cpu(), out));
  EXPECT_TRUE(at::equal(std::get<1>(flash).cpu(), log));
  const auto [dq, dk, dv] =
      at::_scaled_dot_product_flash_attention_for_cpu_backward(grad, q, wide(k), wide(v), out, log, 0.0, true);
  const auto [q_grad, k_grad, v_grad] = at::_scaled_dot_product_flash_attention_backward(
      grad.cuda(), q.cuda(), k.cuda(), v.cuda(), std::get<0>(flash), std::get<1>(flash), Tensor(), Tensor(), 10, 10,
      0.0, true, std::get<6>(flash), std::get<7>(flash));
  EXPECT_TRUE(at::equal(q_grad.cpu(), dq));
  EXPECT_EQ(k_grad.sizes(), k.sizes());
  const Tensor sum = dk.unflatten(1, {2, 2}).to(at::kFloat).sum(2).to(at::kBFloat16);
  EXPECT_TRUE(at::equal(k_grad.cpu(), sum));
  EXPECT_TRUE(at::equal(v_grad.cpu(), dv.unflatten(1, {2, 2}).to(at::kFloat).sum(2).to(at::kBFloat16)));
}

}  // namespace
}  // namespace tessera::sim
