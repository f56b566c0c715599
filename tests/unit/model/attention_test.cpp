// SPDX-License-Identifier: Apache-2.0
// Windows, sinks, scales and unequal head sizes of Operations::attention against a loop over
// queries and keys.
#include <gtest/gtest.h>

#include <cmath>

#include "tessera/model/operations.hpp"

namespace tessera::model {
namespace {

using at::Tensor;

Tensor by_loop(const Attention& a) {
  const std::int64_t queries = a.q.size(1), keys = a.k.size(1), heads = a.q.size(2),
                     group = heads / a.k.size(2);
  const double scale = a.scale > 0 ? a.scale : 1 / std::sqrt(static_cast<double>(a.q.size(3)));
  Tensor out = at::zeros({a.q.size(0), queries, heads, a.v.size(3)}, a.q.options());
  for (std::int64_t b = 0; b < a.q.size(0); ++b)
    for (std::int64_t h = 0; h < heads; ++h)
      for (std::int64_t i = 0; i < queries; ++i) {
        const std::int64_t last = keys - queries + i,
                           first =
                               a.window > 0 ? std::max<std::int64_t>(0, last - a.window + 1) : 0;
        double sum = a.sinks.defined() ? std::exp(a.sinks[h].item<double>()) : 0;
        Tensor value = at::zeros({a.v.size(3)}, a.q.options());
        for (std::int64_t j = first; j <= last; ++j) {
          const double weight =
              std::exp(scale * a.q[b][i][h].dot(a.k[b][j][h / group]).item<double>());
          sum += weight;
          value += weight * a.v[b][j][h / group];
        }
        out[b][i][h] = value / sum;
      }
  return out;
}

struct Row {
  const char* name;
  std::int64_t queries, keys, window;
  bool sinks;
  double scale;
};
class AttentionTwin : public testing::TestWithParam<Row> {};
INSTANTIATE_TEST_SUITE_P(
    Rows, AttentionTwin,
    testing::Values(Row{"plain", 6, 6, 0, false, 0}, Row{"window", 6, 6, 3, false, 0},
                    Row{"sinks", 6, 6, 0, true, 0}, Row{"both", 6, 6, 3, true, 0.7},
                    Row{"one_more", 1, 6, 0, false, 0}, Row{"one_more_in_window", 1, 6, 3, true, 0},
                    Row{"some_more", 3, 6, 0, false, 0.2}, Row{"wide_window", 4, 6, 99, false, 0}),
    [](const auto& info) { return info.param.name; });

TEST_P(AttentionTwin, AgreesWithTheLoop) {
  at::manual_seed(1);
  const Row& row = GetParam();
  const auto options = at::TensorOptions(at::kDouble);
  Attention a;
  a.q = at::randn({2, row.queries, 4, 6}, options);
  a.k = at::randn({2, row.keys, 2, 6}, options);
  a.v = at::randn({2, row.keys, 2, 5}, options);
  a.scale = row.scale;
  a.window = row.window;
  if (row.sinks) a.sinks = at::randn({4}, options);
  EXPECT_LE((plain_operations().attention(a) - by_loop(a)).abs().max().item<double>(), 1e-12);
}

}  // namespace
}  // namespace tessera::model
