// SPDX-License-Identifier: Apache-2.0
#include "tessera/kernels/joined.hpp"

#include <algorithm>

#include "backend.hpp"
#include "tessera/base/error.hpp"
#include "tessera/kernels/accumulation_type.hpp"

namespace tessera::kernels {
namespace {

using at::Tensor;

/// Where the matrix behind `x` in memory begins, in elements.
std::int64_t end_of_rows(const Tensor& x) { return x.storage_offset() + x.numel(); }
std::int64_t end_of_columns(const Tensor& x) { return x.storage_offset() + x.size(1); }

/// Do they share memory and type, each beginning at the end of the one before?
template <class End>
bool follow_each_other(std::span<const Tensor> matrices, End end) {
  return std::ranges::adjacent_find(matrices, [&](const Tensor& before, const Tensor& next) {
           return !next.is_alias_of(before) || next.scalar_type() != before.scalar_type() ||
                  next.storage_offset() != end(before);
         }) == matrices.end();
}

std::int64_t sum_of_sizes(std::span<const Tensor> matrices, std::int64_t dim) {
  std::int64_t sum = 0;
  for (const Tensor& matrix : matrices) sum += matrix.size(dim);
  return sum;
}

void expect_matrices(std::span<const Tensor> matrices) {
  TESSERA_EXPECT(!matrices.empty() &&
                     std::ranges::all_of(matrices, [](const Tensor& x) { return x.dim() == 2; }),
                 "only matrices can be joined");
}

void expect_dense_rows(const Tensor& x) {
  TESSERA_EXPECT(x.dim() == 2 && (x.stride(1) == 1 || x.size(1) < 2), "rows must be dense");
}

void expect_one_type(std::span<const Tensor> tensors) {
  TESSERA_EXPECT(
      std::ranges::all_of(
          tensors, [&](const Tensor& x) { return x.scalar_type() == tensors[0].scalar_type(); }),
      "tensors of several types are copied together");
}

}  // namespace

Tensor joined_rows(std::span<const Tensor> matrices) {
  const at::NoGradGuard no_grad;
  expect_matrices(matrices);
  const std::int64_t columns = matrices[0].size(1);
  const bool dense = std::ranges::all_of(matrices, [columns](const Tensor& x) {
    return x.is_contiguous() && x.size(1) == columns && x.numel() > 0;
  });
  if (!dense || !follow_each_other(matrices, end_of_rows))
    return at::cat({matrices.data(), matrices.size()}, 0);
  return matrices[0].as_strided({sum_of_sizes(matrices, 0), columns}, {columns, 1});
}

bool are_neighbours(std::span<const Tensor> matrices) {
  expect_matrices(matrices);
  const Tensor& first = matrices[0];
  return std::ranges::all_of(matrices,
                             [&first](const Tensor& x) {
                               return x.size(0) == first.size(0) && x.stride(1) == 1 &&
                                      x.stride(0) == first.stride(0) && x.numel() > 0;
                             }) &&
         follow_each_other(matrices, end_of_columns) &&
         sum_of_sizes(matrices, 1) <= first.stride(0);
}

Tensor joined_columns(std::span<const Tensor> matrices) {
  const at::NoGradGuard no_grad;
  if (!are_neighbours(matrices)) return at::cat({matrices.data(), matrices.size()}, 1);
  const Tensor& first = matrices[0];
  return first.as_strided({first.size(0), sum_of_sizes(matrices, 1)}, first.strides());
}

std::vector<Tensor> columns_of(const Tensor& matrix, std::span<const std::int64_t> widths) {
  std::vector<Tensor> columns;
  std::int64_t begin = 0;
  for (const std::int64_t width : widths) {
    columns.push_back(matrix.narrow(1, begin, width).variable_data());
    begin += width;
  }
  return columns;
}

void copy_columns(const Tensor& matrix, std::span<const Tensor> parts) {
  const at::NoGradGuard no_grad;
  expect_dense_rows(matrix);
  for (const Tensor& part : parts) expect_dense_rows(part);
  expect_one_type(parts);
  backend_of(matrix).copy_columns(matrix, parts);
}

namespace {

/// Those that have something.
std::vector<Tensor> contiguous_runs(const Tensor& into, std::span<const Tensor> tensors) {
  expect_dense_rows(into);
  expect_one_type(tensors);
  std::vector<Tensor> contiguous;
  for (const Tensor& tensor : tensors)
    if (tensor.numel() > 0) contiguous.push_back(tensor.contiguous());
  return contiguous;
}

}  // namespace

void copy_runs(const Tensor& into, std::span<const Tensor> tensors) {
  const at::NoGradGuard no_grad;
  const std::vector<Tensor> runs = contiguous_runs(into, tensors);
  if (!runs.empty()) backend_of(into).copy_runs(into, runs);
}

bool can_add_runs(const Tensor& into, const Tensor& tensor) {
  const at::ScalarType type = tensor.scalar_type();
  const bool computes = type == at::kDouble || type == at::kFloat || type == at::kBFloat16;
  return computes && into.scalar_type() == accumulation_type(tensor);
}

void add_runs(const Tensor& into, std::span<const Tensor> tensors) {
  const at::NoGradGuard no_grad;
  const std::vector<Tensor> runs = contiguous_runs(into, tensors);
  if (runs.empty()) return;
  TESSERA_EXPECT(can_add_runs(into, runs.front()), "a sum of another type");
  backend_of(into).add_runs(into, runs);
}

}  // namespace tessera::kernels
