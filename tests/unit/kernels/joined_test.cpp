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

/// Values of any type that no rounding changes, from `offset` elements behind aligned memory on.
at::Tensor values(at::IntArrayRef shape, at::ScalarType dtype, std::int64_t offset = 0) {
  const std::int64_t count = c10::multiply_integers(shape);
  return at::arange(1, count + offset + 1, at::kLong)
      .remainder(251)
      .to(options(dtype))
      .narrow(0, offset, count)
      .view(shape);
}

/// Every element size, and all types that are computed with.
constexpr at::ScalarType kCopiedTypes[] = {at::kByte,  at::kBFloat16, at::kHalf,
                                           at::kFloat, at::kDouble,   at::kLong};

/// The slow twin copies each part alone. The matrix and the parts are cut out of other memory,
/// which stays as it is.
void expect_columns(const std::vector<std::int64_t>& widths, std::int64_t rows,
                    at::ScalarType dtype, std::int64_t offset) {
  std::int64_t columns = 0;
  for (const std::int64_t width : widths) columns += width;
  const at::Tensor around = values({rows, columns + 2 * offset}, dtype),
                   matrix = around.narrow(1, offset, columns);
  Tensors memory, parts;
  for (const std::int64_t width : widths) {
    memory.push_back(at::full({offset + rows * width + offset}, 7, options(dtype)));
    parts.push_back(memory.back().narrow(0, offset, rows * width).view({rows, width}));
  }
  copy_columns(matrix, parts);
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < widths.size(); ++i) {
    EXPECT_TRUE(at::equal(parts[i].cpu(), matrix.cpu().narrow(1, begin, widths[i])))
        << dtype << " part " << i << " offset " << offset;
    EXPECT_TRUE(memory[i].narrow(0, 0, offset).eq(7).all().item<bool>());
    EXPECT_TRUE(memory[i].narrow(0, offset + parts[i].numel(), offset).eq(7).all().item<bool>());
    begin += widths[i];
  }
}

TEST(CopyColumns, FillTheirParts) {
  for (const auto dtype : kCopiedTypes)
    for (const std::int64_t offset : {0, 1, 3})
      expect_columns({16, 1, 0, 4, 33, 5, 3000, 16, 32}, 3, dtype, offset);
}

/// More than one launch serves, blocks with many parts and parts with many blocks.
TEST(CopyColumns, OfManyParts) {
  std::vector<std::int64_t> widths;
  for (std::int64_t i = 0; i < 150; ++i) widths.push_back(i % 7);
  widths[70] = 9001;
  expect_columns(widths, 2, at::kBFloat16, 0);
  expect_columns(std::vector<std::int64_t>(64, 8), 4, at::kFloat, 0);
  expect_columns(std::vector<std::int64_t>(65, 8), 1, at::kFloat, 0);
}

TEST(CopyColumns, OfNothing) {
  expect_columns({0, 0}, 3, at::kFloat, 0);
  expect_columns({4, 2}, 0, at::kFloat, 0);
}

/// The slow twin pads each tensor with rows of zeros.
at::Tensor cut_by_rows(const Tensors& tensors, std::int64_t runs, at::ScalarType dtype) {
  at::Tensor expected = at::zeros({runs, 0}, options(dtype));
  for (const at::Tensor& tensor : tensors) {
    const std::int64_t rows = tensor.size(0), each = (rows + runs - 1) / runs;
    const std::int64_t width = rows == 0 ? 0 : tensor.numel() / rows;
    at::Tensor cut = at::zeros({runs, each * width}, options(dtype));
    cut.view({runs * each, width}).narrow(0, 0, rows).copy_(tensor.reshape({rows, width}));
    expected = at::cat({expected, cut}, 1);
  }
  return expected;
}

void expect_runs(const Tensors& tensors, at::ScalarType dtype, std::int64_t offset = 0) {
  for (const std::int64_t runs : {1, 2, 3, 4, 9}) {
    const at::Tensor expected = cut_by_rows(tensors, runs, dtype);
    const at::Tensor memory = at::full({offset + expected.numel() + offset}, 7, options(dtype)),
                     into = memory.narrow(0, offset, expected.numel()).view(expected.sizes());
    copy_runs(into, tensors);
    EXPECT_TRUE(at::equal(into, expected)) << runs << " runs of " << dtype;
    EXPECT_TRUE(memory.narrow(0, 0, offset).eq(7).all().item<bool>());
    EXPECT_TRUE(memory.narrow(0, offset + into.numel(), offset).eq(7).all().item<bool>());
  }
}

TEST(CopyRuns, CutEachTensorForTheRanks) {
  for (const auto dtype : kCopiedTypes)
    for (const std::int64_t offset : {0, 1})
      expect_runs({values({6, 2, 3}, dtype), values({5}, dtype, 1), values({1, 4}, dtype),
                   values({0, 3}, dtype), values({64, 48}, dtype), values({7, 129}, dtype, 3),
                   values({4, 6}, dtype).t()},
                  dtype, offset);
}

TEST(CopyRuns, RoundToTheTargetsType) {
  for (const auto from : dtypes)
    for (const auto to : dtypes) {
      Tensors tensors{random({6, 2, 3}, from), random({5}, from), random({64, 24}, from),
                      random({9, 128}, from)};
      tensors.push_back(
          at::tensor({INFINITY, -INFINITY, -0.0, 1e-40, 1e300}, at::kDouble).to(options(from)));
      expect_runs(tensors, to);
      expect_runs(tensors, to, 1);
    }
}

/// The slow twin adds copies, element by element.
TEST(AddRuns, AddToWhatIsThere) {
  for (const auto dtype : dtypes)
    for (const std::int64_t runs : {1, 2, 3, 9})
      for (const std::int64_t offset : {0, 1}) {
        const Tensors tensors{random({6, 2, 3}, dtype),  random({5}, dtype),
                              random({1, 4}, dtype),     random({0, 3}, dtype),
                              random({640, 48}, dtype),  random({7, 129}, dtype),
                              random({4, 6}, dtype).t(), random({70000}, dtype)};
        const auto wide = dtype == at::kDouble ? at::kDouble : at::kFloat;
        const at::Tensor copies = cut_by_rows(tensors, runs, wide);
        const at::Tensor memory = random({offset + copies.numel() + offset}, wide),
                         before = memory.clone(),
                         into = memory.narrow(0, offset, copies.numel()).view(copies.sizes());
        add_runs(into, tensors);
        at::Tensor expected = before.clone();
        expected.narrow(0, offset, copies.numel()).add_(copies.flatten());
        EXPECT_TRUE(at::equal(memory, expected)) << runs << " runs of " << dtype;
      }
}

TEST(CopyRuns, OfManyTensors) {
  Tensors tensors;
  for (std::int64_t i = 0; i < 130; ++i)
    tensors.push_back(random({1 + i % 5, 1 + i % 3}, at::kBFloat16));
  expect_runs(tensors, at::kFloat);
}

}  // namespace
}  // namespace tessera::kernels::test
