// SPDX-License-Identifier: Apache-2.0
// Matrix products of groups of rows, each with a matrix of its own: the experts of a mixture.
#pragma once

#include "tessera/kernels/tensor.hpp"

namespace tessera::kernels {

/// Whether one kernel multiplies all groups of such rows, where every row of every matrix begins at
/// a multiple of 16 bytes, too: bfloat16 on devices. The host need not know the counts then, but
/// LibTorch asks for them on compute capabilities other than 9.0 and 10.x.
bool groups_in_one_kernel(const at::Tensor& rows);

/// What the products of such rows take as `groups`: where each group ends, [G] int32, on the rows'
/// device, if one kernel multiplies all; else the counts. Made once, it serves all products.
at::Tensor row_groups(const at::Tensor& counts, const at::Tensor& rows);

/// y [R, out]: rows of x [R, in], group after group, times the transpose of their group's matrix of
/// w [G, out, in]. `groups` [G]: rows of each group as int64, R in all or fewer, or where groups
/// end as int32; groups may be empty. They are in host memory or on x's device, of which the host
/// asks them if it multiplies group by group. Rows after the last group belong to none: theirs of y
/// and of the gradient of x may hold anything. Differentiable in x and w. Each row's bits depend on
/// its group's rows only. Throws ContractViolation when shapes do not fit.
at::Tensor grouped_mm(const at::Tensor& x, const at::Tensor& w, const at::Tensor& groups);

/// Gradient of w: dy_g^T x_g for each group g, [G, out, in].
at::Tensor grouped_weight_gradient(const at::Tensor& dy, const at::Tensor& x,
                                   const at::Tensor& groups);

}  // namespace tessera::kernels
