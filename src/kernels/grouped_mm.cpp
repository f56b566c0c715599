// SPDX-License-Identifier: Apache-2.0
#include "tessera/kernels/grouped_mm.hpp"

#include <span>

#include "tessera/base/error.hpp"
#include "tessera/base/grouped_columns.hpp"
#include "tessera/kernels/matrix_product.hpp"
#include "tessera/kernels/operation.hpp"

namespace tessera::kernels {
namespace {

using at::Tensor;

/// Rows of each group, in host memory.
class HostCounts {
 public:
  explicit HostCounts(const Tensor& groups)
      : are_ends_(groups.scalar_type() == at::kInt), groups_(groups.to(at::kCPU, at::kLong)) {}
  std::int64_t operator[](std::int64_t group) const {
    const auto* const of = groups_.const_data_ptr<std::int64_t>();
    return are_ends_ && group > 0 ? of[group] - of[group - 1] : of[group];
  }

 private:
  bool are_ends_;
  Tensor groups_;
};

bool in_one_kernel(const Tensor& x, std::int64_t columns) {
  return groups_in_one_kernel(x) && x.size(0) > 0 && x.size(1) % kGroupedColumns == 0 &&
         columns % kGroupedColumns == 0;
}

/// Where groups end.
Tensor ends_of(const Tensor& groups, const Tensor& x) {
  if (groups.scalar_type() == at::kInt) return groups;
  return groups.cumsum(0, at::kInt).to(x.device(), /*non_blocking=*/true);
}

/// out <- a b. Experts have other rows in each step, and oneDNN makes a kernel for each new shape:
/// float32 stays in MKL.
void multiply(Tensor out, const Tensor& a, const Tensor& b) {
  if (widens(a))
    kernels::mm_out(out, a, b);
  else
    at::mm_out(out, a, b);
}

/// x_g times w_g (or its transpose) for every group.
Tensor product(const Tensor& x, const Tensor& w, const Tensor& groups, bool transposed) {
  const Tensor matrices = transposed ? w.transpose(1, 2) : w;
  if (in_one_kernel(x, matrices.size(2))) return at::_grouped_mm(x, matrices, ends_of(groups, x));
  Tensor y = at::empty({x.size(0), matrices.size(2)}, x.options());
  if (x.size(0) == 0) return y;
  const HostCounts rows_of(groups);
  std::int64_t row = 0;
  for (std::int64_t g = 0; g < w.size(0); ++g) {
    const std::int64_t rows = rows_of[g];
    Tensor part = y.narrow(0, row, rows);
    if (rows > 0) multiply(part, x.narrow(0, row, rows), matrices[g]);
    row += rows;
  }
  return y;
}

/// Of x, w and groups.
struct GroupedMm final : Operation {
  std::vector<Tensor> forward(Kept& kept, std::span<const Tensor> inputs) override {
    kept.save({inputs[0], inputs[1], inputs[2]});
    return {product(inputs[0], inputs[1], inputs[2], true)};
  }
  std::vector<Tensor> backward(Kept& kept, std::vector<Tensor> gradients) override {
    const auto saved = kept.saved();
    const Tensor dy = gradients[0].contiguous();
    Tensor dx, dw;
    if (kept.needs_gradient(0)) dx = product(dy, saved[1], saved[2], false);
    if (kept.needs_gradient(1)) dw = grouped_weight_gradient(dy, saved[0], saved[2]);
    return {dx, dw, {}};
  }
};

}  // namespace

bool groups_in_one_kernel(const Tensor& rows) {
  return !rows.is_cpu() && rows.scalar_type() == at::kBFloat16;
}

Tensor row_groups(const Tensor& counts, const Tensor& rows) {
  return groups_in_one_kernel(rows) ? ends_of(counts, rows) : counts;
}

Tensor grouped_mm(const Tensor& x, const Tensor& w, const Tensor& groups) {
  TESSERA_EXPECT(x.dim() == 2 && w.dim() == 3 && x.size(1) == w.size(2),
                 "rows do not fit the groups' matrices");
  const bool are_counts = groups.scalar_type() == at::kLong;
  TESSERA_EXPECT(
      (are_counts || groups.scalar_type() == at::kInt) && groups.is_contiguous() &&
          groups.numel() == w.size(0) &&
          (!are_counts || !groups.is_cpu() || groups.sum().item<std::int64_t>() <= x.size(0)),
      "{} counts must not add up to more than {} rows", w.size(0), x.size(0));
  return apply(GroupedMm(), {x, w, groups});
}

Tensor grouped_weight_gradient(const Tensor& dy, const Tensor& x, const Tensor& groups) {
  const at::NoGradGuard no_grad;
  if (in_one_kernel(x, dy.size(1)))
    return at::_grouped_mm(dy.contiguous().t(), x.contiguous(), ends_of(groups, x));
  Tensor dw = at::empty({groups.numel(), dy.size(1), x.size(1)}, x.options());
  if (x.size(0) == 0) return dw.zero_();
  const HostCounts rows_of(groups);
  std::int64_t row = 0;
  for (std::int64_t g = 0; g < groups.numel(); ++g) {
    const std::int64_t rows = rows_of[g];
    Tensor part = dw[g];
    if (rows > 0)
      multiply(part, dy.narrow(0, row, rows).t(), x.narrow(0, row, rows));
    else
      part.zero_();
    row += rows;
  }
  return dw;
}

}  // namespace tessera::kernels
