// SPDX-License-Identifier: Apache-2.0
#include "operator_cases.hpp"

namespace tessera::sim::test {

using at::Tensor;

std::vector<Case> indexing() {
  return {
      {"index_select",
       [](const Inputs& in) {
         return std::vector{in.real({9, 4}).index_select(0, in.whole({6}, 9))};
       }},
      {"gather_scatter",
       [](const Inputs& in) {
         const Tensor index = in.real({4, 9}).argsort(std::int64_t{1}).narrow(1, 0, 3);
         return std::vector{in.real({4, 9}).gather(1, index),
                            in.real({4, 9}).scatter_add(1, index, in.real({4, 3}))};
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
         return std::vector{
             in.whole({9, 4}, 9).index_add(0, in.whole({6}, 9), in.whole({6, 4}, 9))};
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
         return std::vector{at::one_hot(in.whole({6}, 5), 5),
                            at::bincount(in.whole({30}, 5), {}, 5)};
       }},
      {"searchsorted",
       [](const Inputs& in) {
         return std::vector{at::searchsorted(std::get<0>(in.real({20}).sort()), in.real({5}))};
       }},
      {"cat_stack",
       [](const Inputs& in) {
         return std::vector{at::cat({in.real({2, 3}), in.real({4, 3})}),
                            at::stack({in.real({3}), in.real({3})}, 1)};
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
         return std::vector{at::view_as_real(z * z.conj()),
                            at::view_as_real(at::complex(in.real({3}), in.real({3})))};
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
         return std::vector{at::arange(7, in.options(at::kLong)),
                            at::arange(0, 1, 0.125, in.options())};
       }},
      {"eye_linspace",
       [](const Inputs& in) {
         return std::vector{at::eye(4, in.options()), at::linspace(0, 1, 5, in.options())};
       }},
      {"random",
       [](const Inputs& in) {
         at::manual_seed(5);
         return std::vector{at::randn({9}, in.options()), at::rand({9}, in.options()),
                            at::randint(100, {9}, in.options(at::kLong)),
                            at::randperm(9, in.options(at::kLong))};
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

}  // namespace tessera::sim::test
