// SPDX-License-Identifier: Apache-2.0
#include "tessera/kernels/joined.hpp"

#include <array>

#include "twin.hpp"

namespace tessera::kernels::test {
namespace {

using Tensors = std::vector<at::Tensor>;

/// Is `joined` the matrices' own memory, with what `copy` has?
void expect_view(const at::Tensor& joined, const Tensors& matrices, const at::Tensor& copy) {
  EXPECT_TRUE(at::equal(joined, copy));
  EXPECT_TRUE(joined.is_alias_of(matrices[0]));
  EXPECT_EQ(joined.const_data_ptr(), matrices[0].const_data_ptr());
}

TEST(JoinedRows, AreAViewWhereTheyFollowEachOther) {
  const at::Tensor memory = random({100}, at::kFloat);
  const auto part = [&](std::int64_t begin, std::int64_t rows) {
    return memory.narrow(0, begin, rows * 5).view({rows, 5});
  };
  const Tensors together{part(10, 3), part(25, 1), part(30, 7)};
  expect_view(joined_rows(together), together, at::cat(together));
  for (const Tensors& apart :
       {Tensors{part(10, 3), part(26, 1)}, Tensors{part(25, 1), part(10, 3)},
        Tensors{part(10, 3), part(25, 1).clone()}, Tensors{part(10, 0), part(10, 3)}}) {
    const at::Tensor joined = joined_rows(apart);
    EXPECT_TRUE(at::equal(joined, at::cat(apart)));
    EXPECT_FALSE(joined.is_alias_of(memory));
  }
}

TEST(JoinedColumns, AreAViewWhereTheyAreNeighbours) {
  const at::Tensor matrix = random({4, 9}, at::kFloat);
  const Tensors all = columns_of(matrix, std::array<std::int64_t, 3>{2, 4, 3}),
                some{all[1], all[2]};
  expect_view(joined_columns(all), all, matrix);
  expect_view(joined_columns(some), some, matrix.narrow(1, 2, 7));
  for (const Tensors& apart :
       {Tensors{all[1], all[0]}, Tensors{all[0], all[2]}, Tensors{all[0], all[1].contiguous()},
        Tensors{all[2], matrix.narrow(1, 0, 2)}, Tensors{matrix.narrow(1, 0, 0), all[0]}}) {
    EXPECT_FALSE(are_neighbours(apart));
    EXPECT_TRUE(at::equal(joined_columns(apart), at::cat(apart, 1)));
  }
}

TEST(JoinedColumns, OfTheNextRowAreNone) {
  const at::Tensor memory = random({24}, at::kFloat);
  const Tensors rows{memory.as_strided({2, 4}, {4, 1}, 0), memory.as_strided({2, 4}, {4, 1}, 4)};
  EXPECT_FALSE(are_neighbours(rows));
  EXPECT_TRUE(at::equal(joined_columns(rows), at::cat(rows, 1)));
}

TEST(CopyColumns, FillTheirParts) {
  for (const auto dtype : dtypes) {
    const at::Tensor matrix = random({3, 9}, dtype);
    const Tensors parts{at::empty({3, 2}, options(dtype)), at::empty({3, 4}, options(dtype)),
                        at::empty({3, 3}, options(dtype))};
    copy_columns(matrix, parts);
    EXPECT_TRUE(at::equal(at::cat(parts, 1), matrix));
  }
}

/// The slow twin copies row by row.
TEST(CopyRuns, CutEachTensorForTheRanks) {
  const Tensors tensors{random({6, 2, 3}, at::kBFloat16), random({5}, at::kBFloat16),
                        random({1, 4}, at::kBFloat16)};
  for (const std::int64_t runs : {1, 2, 3, 4}) {
    at::Tensor expected;
    for (const at::Tensor& tensor : tensors) {
      const std::int64_t rows = tensor.size(0), each = (rows + runs - 1) / runs;
      at::Tensor cut = at::zeros({runs, each * (tensor.numel() / rows)}, options());
      for (std::int64_t row = 0; row < rows; ++row)
        cut.view({runs * each, -1})[row] = tensor[row].flatten();
      expected = expected.defined() ? at::cat({expected, cut}, 1) : cut;
    }
    const at::Tensor into = at::full(expected.sizes(), NAN, options());
    copy_runs(into, tensors);
    EXPECT_TRUE(at::equal(into, expected)) << runs;
  }
}

}  // namespace
}  // namespace tessera::kernels::test
