// SPDX-License-Identifier: Apache-2.0
#include "tessera/kernels/choices.hpp"

#include "tessera/base/error.hpp"
#include "twin.hpp"

namespace tessera::kernels::test {
namespace {

at::Tensor some_places(std::int64_t tokens, std::int64_t choices) {
  return at::randn({tokens * choices}).argsort().view({tokens, choices});
}

at::ScalarType computing(at::ScalarType type) { return type == at::kDouble ? type : at::kFloat; }

/// Of more rows than there are choices.
at::Tensor places_among(std::int64_t rows, std::int64_t tokens, std::int64_t choices) {
  return at::randn({rows}).argsort().narrow(0, 0, tokens * choices).view({tokens, choices});
}

/// sum_of_choices() and its twin with `places`, of rows and, where there are two inputs, weights.
Kernel kernel(const at::Tensor& places) {
  return [places](const std::vector<at::Tensor>& in) {
    return sum_of_choices(in[0], places.to(test_device()), in.size() > 1 ? in[1] : at::Tensor());
  };
}
Kernel twin(const at::Tensor& places) {
  return [places](const std::vector<at::Tensor>& in) {
    const at::Tensor chosen =
        in[0].index_select(0, places.flatten()).view({places.size(0), places.size(1), -1});
    return in.size() > 1 ? (chosen * in[1].unsqueeze(-1)).sum(1) : chosen.sum(1);
  };
}

TEST(SumOfChoices, EqualsItsTwin) {
  at::manual_seed(3);
  for (const auto dtype : dtypes)
    for (const std::int64_t width : {1, 13, 96, 520})
      for (const std::int64_t choices : {1, 3, 8}) {
        const at::Tensor places = some_places(7, choices);
        const at::Tensor rows = random({7 * choices, width}, dtype);
        expect_twins(kernel(places), twin(places), {rows, random({7, choices}, computing(dtype))});
        expect_twins(kernel(places), twin(places), {rows});
      }
}

/// Values that are not read, as free rows have, may be anything.
TEST(SumOfChoices, LeavesRowsWithoutAChoice) {
  at::manual_seed(5);
  for (const auto dtype : dtypes)
    for (const std::int64_t choices : {1, 3}) {
      const at::Tensor places = places_among(30, 7, choices), rows = random({30, 24}, dtype);
      const at::Tensor weights = random({7, choices}, computing(dtype));
      expect_twins(kernel(places), twin(places), {rows, weights});
      expect_twins(kernel(places), twin(places), {rows});
      const at::Tensor free = at::ones({30}, at::kBool).index_fill_(0, places.flatten(), 0);
      const at::Tensor spoiled =
          rows.masked_fill(free.to(rows.device()).unsqueeze(1), NAN).requires_grad_();
      const at::Tensor y = kernel(places)({spoiled, weights});
      EXPECT_TRUE(at::equal(y, kernel(places)({rows, weights})));
      torch::autograd::backward({y}, {at::ones_like(y)});
      EXPECT_TRUE(spoiled.grad().cpu().masked_select(free.unsqueeze(1)).eq(0).all().item<bool>());
    }
}

/// `places` of which every `nth` is -1.
at::Tensor places_without(at::Tensor places, std::int64_t nth) {
  places.view({-1}).slice(0, 0, places.numel(), nth).fill_(-1);
  return places;
}

TEST(SumOfChoices, LeavesChoicesWithoutARow) {
  at::manual_seed(7);
  for (const auto dtype : dtypes)
    for (const std::int64_t choices : {1, 3, 8})
      for (const std::int64_t nth : {1, 2, 5})
        for (const std::int64_t rows : {7 * choices, std::int64_t{60}}) {
          const at::Tensor places = places_without(places_among(rows, 7, choices), nth);
          const at::Tensor absent = places.lt(0);
          const auto sum = [&](const std::vector<at::Tensor>& in) {
            return sum_of_choices(in[0], places.to(test_device()),
                                  in.size() > 1 ? in[1] : at::Tensor(), Paired::some);
          };
          const auto of_zeros = [&](const std::vector<at::Tensor>& in) {
            const at::Tensor weights =
                in.size() > 1 ? in[1] : at::ones({7, choices}, in[0].options());
            return (in[0].index_select(0, places.clamp_min(0).flatten()).view({7, choices, -1}) *
                    weights.masked_fill(absent, 0).unsqueeze(-1))
                .sum(1);
          };
          const at::Tensor of = random({rows, 24}, dtype);
          expect_twins(sum, of_zeros, {of, random({7, choices}, computing(dtype))});
          expect_twins(sum, of_zeros, {of});
        }
}

/// Where every row has a choice, no gradient is filled with zeros first.
TEST(SumOfChoices, GivesAGradientToEachRow) {
  at::manual_seed(9);
  for (const auto dtype : dtypes) {
    const at::Tensor places = at::full({21}, -1, at::kLong);
    places.index_copy_(0, at::randn({21}).argsort().narrow(0, 0, 12), at::randn({12}).argsort());
    const auto sum = [&](const std::vector<at::Tensor>& in) {
      return sum_of_choices(in[0], places.view({7, 3}).to(test_device()), in[1], Paired::rows);
    };
    const auto of_zeros = [&](const std::vector<at::Tensor>& in) {
      const at::Tensor rows = in[0].index_select(0, places.clamp_min(0)).view({7, 3, -1});
      return (rows * in[1].masked_fill(places.view({7, 3}).lt(0), 0).unsqueeze(-1)).sum(1);
    };
    expect_twins(sum, of_zeros, {random({12, 24}, dtype), random({7, 3}, computing(dtype))});
  }
}

/// They read no row, so that none makes a sum NaN.
TEST(SumOfChoices, ReadsNoRowForThem) {
  const at::Tensor rows = at::full({4, 8}, NAN, at::kFloat).to(test_device()).requires_grad_();
  const at::Tensor weights = at::ones({3, 2}, at::kFloat).to(test_device()).requires_grad_();
  const at::Tensor places = at::full({3, 2}, -1, at::kLong).to(test_device());
  const at::Tensor y = sum_of_choices(rows, places, weights, Paired::some);
  torch::autograd::backward({y}, {at::ones_like(y)});
  for (const at::Tensor& zeros : {y, rows.grad(), weights.grad()})
    EXPECT_TRUE(zeros.eq(0).all().item<bool>());
}

TEST(SumOfChoices, TakesViewsOfGradients) {
  const at::Tensor places = some_places(5, 2), rows = random({10, 16}, at::kBFloat16);
  const at::Tensor gradient = random({16, 5}, at::kBFloat16).t();
  const auto of = [&](const at::Tensor& dy) {
    const at::Tensor leaf = rows.detach().clone().requires_grad_();
    torch::autograd::backward({kernel(places)({leaf})}, {dy});
    return leaf.grad();
  };
  EXPECT_TRUE(at::equal(of(gradient), of(gradient.contiguous())));
}

TEST(SumOfChoices, OfNoTokens) {
  const at::Tensor rows = random({0, 8}, at::kFloat).requires_grad_();
  const at::Tensor weights = random({0, 2}, at::kFloat).requires_grad_();
  const at::Tensor y = kernel(some_places(0, 2))({rows, weights});
  EXPECT_EQ(y.sizes(), at::IntArrayRef({0, 8}));
  torch::autograd::backward({y}, {at::empty_like(y)});
  EXPECT_EQ(weights.grad().sizes(), weights.sizes());
}

TEST(SumOfChoices, RefusesWhatDoesNotFit) {
  const at::Tensor rows = random({6, 4}, at::kBFloat16), places = some_places(3, 2);
  EXPECT_THROW(kernel(places)({rows, random({3, 2}, at::kBFloat16)}), ContractViolation);
  EXPECT_THROW(kernel(places)({rows, random({2, 3}, at::kFloat)}), ContractViolation);
  EXPECT_THROW(kernel(some_places(4, 2))({rows}), ContractViolation);
}

TEST(SumOfChoices, UndoesAnOrder) {
  const at::Tensor order = some_places(17, 3).flatten();
  EXPECT_TRUE(at::equal(order.index_select(0, undoing(order)), at::arange(51, at::kLong)));
}

/// Each row's group: `counts` rows of each, one group after another.
at::Tensor groups_of_rows(const std::vector<std::int64_t>& counts) {
  std::vector<std::int64_t> of_rows;
  for (std::size_t g = 0; g < counts.size(); ++g)
    of_rows.insert(of_rows.end(), static_cast<std::size_t>(counts[g]),
                   static_cast<std::int64_t>(g));
  return at::tensor(of_rows, at::kLong);
}

TEST(RowsOfGroups, EqualTheirTwin) {
  at::manual_seed(4);
  for (const auto dtype : dtypes)
    for (const auto& counts : std::vector<std::vector<std::int64_t>>{{5}, {0, 3, 0, 9}, {0, 0}}) {
      const at::Tensor of_rows = groups_of_rows(counts);
      const auto groups = static_cast<std::int64_t>(counts.size());
      expect_twins([&](const auto& in) { return rows_of_groups(in[0], of_rows.to(test_device())); },
                   [&](const auto& in) { return in[0].index_select(0, of_rows); },
                   {random({groups, 24}, dtype)});
    }
}

TEST(RowsOfGroups, AddUpManyGradients) {
  const at::Tensor of_rows = groups_of_rows({3000, 0, 1000}).to(test_device());
  const at::Tensor values = random({3, 8}, at::kBFloat16).requires_grad_();
  const at::Tensor y = rows_of_groups(values, of_rows);
  torch::autograd::backward({y}, {at::ones_like(y)});
  const at::Tensor wanted = at::tensor({3008.0F, 0.0F, 1000.0F});  // 3000, in bfloat16
  EXPECT_TRUE(at::equal(values.grad().cpu().to(at::kFloat), wanted.unsqueeze(1).expand({3, 8})))
      << values.grad();
}

TEST(RowsOfGroups, RefuseRowsWithoutAGroup) {
  const at::Tensor values = random({3, 8}, at::kFloat);
  EXPECT_THROW(rows_of_groups(values, at::zeros({2, 1}, at::kLong)), ContractViolation);
  EXPECT_THROW(rows_of_groups(values, at::zeros({2}, at::kInt)), ContractViolation);
}

}  // namespace
}  // namespace tessera::kernels::test
