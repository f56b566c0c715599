// SPDX-License-Identifier: Apache-2.0
#include "tessera/parallel/rounded_experts.hpp"

#include "product_rounding.hpp"
#include "tessera/base/error.hpp"
#include "tessera/kernels/grouped_mm.hpp"
#include "tessera/kernels/mx_scales.hpp"
#include "tessera/kernels/operation.hpp"

namespace tessera::parallel {
namespace {

using at::Tensor;
using kernels::Kept;
using kernels::ScaleBlock;
using Tensors = std::vector<Tensor>;

constexpr ScaleBlock kBlocks{mx_block, 1};

/// Rows that are sorted by group, moved apart so that each group begins with a block of mx_block
/// rows. Those of no group, after all others, count as one more. The host knows no count, so memory
/// includes a short block of each group.
class RowsInBlocks {
 public:
  RowsInBlocks(const Tensor& groups, std::int64_t rows, at::Device device)
      : groups_(groups.numel() + 1), blocks_(rows / mx_block + groups_) {
    const auto numbers = at::TensorOptions(at::kLong).device(device);
    const Tensor there = groups.to(device, at::kLong, /*non_blocking=*/true);
    const Tensor ends = at::cat(
        {groups.scalar_type() == at::kInt ? there : there.cumsum(0), at::full({1}, rows, numbers)});
    Tensor begins = at::zeros({groups_}, numbers);
    begins.narrow(0, 1, groups_ - 1).copy_(ends.narrow(0, 0, groups_ - 1));
    const Tensor blocks = (ends - begins + (mx_block - 1)).div(mx_block, "floor"),
                 block_ends = blocks.cumsum(0);
    const Tensor row = at::arange(rows, numbers), block = at::arange(blocks_, numbers);
    const Tensor apart = (block_ends - blocks) * mx_block - begins;
    places_ = row + apart.index_select(0, at::searchsorted(ends, row, false, true));
    group_of_block_ = at::searchsorted(block_ends, block, false, true).clamp_max(groups_ - 1);
    last_of_block_ = block_ends.index_select(0, group_of_block_).sub(1);
  }

  Tensor apart(const Tensor& rows) const {
    return at::zeros({blocks_ * mx_block, rows.size(1)}, rows.options())
        .index_copy_(0, places_, rows);
  }
  Tensor together(const Tensor& apart) const { return apart.index_select(0, places_); }
  /// For each block, the largest numbers [blocks, n] of its group's blocks, in log2(blocks) passes:
  /// LibTorch's reductions by index may change, as it warns.
  Tensor of_groups(Tensor largest) const {
    for (std::int64_t step = 1; step < blocks_; step *= 2) {
      const std::int64_t rest = blocks_ - step;
      const Tensor here = largest.narrow(0, step, rest), before = largest.narrow(0, 0, rest),
                   same = group_of_block_.narrow(0, step, rest)
                              .eq(group_of_block_.narrow(0, 0, rest))
                              .unsqueeze(1);
      largest =
          at::cat({largest.narrow(0, 0, step), at::maximum(here, at::where(same, before, here))});
    }
    return largest.index_select(0, last_of_block_);
  }

 private:
  std::int64_t groups_, blocks_;
  Tensor places_;                          ///< of rows
  Tensor group_of_block_, last_of_block_;  ///< the last block of the same group
};

/// The values of a matrix whose columns are rounded group by group: with one scale for a group, or
/// by MX one for each block.
Tensor rounded_columns(const Tensor& matrix, const RowsInBlocks& rows, Scaling scaling,
                       at::ScalarType type) {
  const Tensor apart = rows.apart(matrix);
  kernels::ScaledBytes bytes;
  if (scaling == Scaling::powers_of_two) {
    const Tensor largest = rows.of_groups(kernels::largest_magnitudes(apart, kBlocks));
    bytes = kernels::to_bytes(apart, kernels::scales_for(largest, DType::f8e4m3, true),
                              DType::f8e4m3, kBlocks);
  } else {
    bytes = kernels::to_mx_bytes(apart, DType::f8e4m3, kernels::MxScale::rceil, kBlocks);
  }
  return rows.together(kernels::from_bytes(bytes, type));
}

Tensor product(const RoundedOperand& x, const Tensor& weight, const Tensor& groups,
               at::ScalarType type) {
  return kernels::grouped_mm(x.value, weight, groups).to(type);
}

Tensor forward_product(const Tensor& x, const Tensor& weight, const Tensor& groups,
                       const LinearRounding& how) {
  const auto operands = ProductRounding(how).forward(x, {weight});
  return product(operands[0], operands[1].value.view(weight.sizes()), groups, x.scalar_type());
}

/// Of x, weight and groups. The queue outlives every graph.
class RoundedExperts final : public kernels::Operation {
 public:
  RoundedExperts(LinearRounding how, WeightGradients& gradients)
      : how_(std::move(how)), gradients_(gradients) {}

  Tensors forward(Kept& kept, std::span<const Tensor> inputs) override {
    kept.save({inputs[0], inputs[1], inputs[2]});
    return {forward_product(inputs[0], inputs[1], inputs[2], how_)};
  }

  Tensors backward(Kept& kept, Tensors out) override {
    const Tensors saved = kept.saved();
    const Tensor &x = saved[0], &weight = saved[1], &groups = saved[2], g = out[0].contiguous();
    Tensor of_x, of_weight;
    if (kept.needs_gradient(0)) {
      const auto operands = ProductRounding(how_).of_input(g, weight);
      of_x = product(operands[0], operands[1].value.view(weight.sizes()).transpose(1, 2), groups,
                     x.scalar_type());
    }
    if (kept.needs_gradient(1))
      of_weight = gradients_.now_or_later(weight, [g, x = x.detach(), groups, how = how_] {
        return of_weights(g, x, groups, how);
      });
    return {of_x, of_weight, {}};
  }

 private:
  static Tensor of_weights(const Tensor& g, const Tensor& x, const Tensor& groups,
                           const LinearRounding& how) {
    const at::NoGradGuard no_grad;
    const Scaling scaling = recipe_of(how.recipe).scaling;
    const at::ScalarType type = ProductRounding(how).type_of_values(x);
    const auto gradient = [&](const Tensor& rounded_g, const Tensor& rounded_x) {
      return kernels::grouped_weight_gradient(rounded_g, rounded_x, groups).to(x.scalar_type());
    };
    if (x.size(0) == 0) return gradient(g.to(type), x.to(type));
    const RowsInBlocks rows(groups, x.size(0), x.device());
    return gradient(rounded_columns(g, rows, scaling, type),
                    rounded_columns(x, rows, scaling, type));
  }

  const LinearRounding how_;
  WeightGradients& gradients_;
};

}  // namespace

Tensor rounded_expert_linear(const Tensor& x, const Tensor& weight, const Tensor& groups,
                             const LinearRounding& how, WeightGradients& gradients) {
  TESSERA_EXPECT(
      how.recipe == plan::LinearRecipe::rowwise || how.recipe == plan::LinearRecipe::mxfp8_rceil,
      "no recipe of experts");
  return kernels::apply(RoundedExperts(how, gradients), {x, weight, groups});
}

Tensor rounded_expert_product(const Tensor& x, const Tensor& weight, const Tensor& groups,
                              const LinearRounding& how) {
  const at::NoGradGuard no_grad;
  return forward_product(x, weight, groups, how);
}

}  // namespace tessera::parallel
