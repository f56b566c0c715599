// SPDX-License-Identifier: Apache-2.0
// Matrix products of groups of rows, each with a matrix of its own: the experts of a mixture.
#pragma once

#include "tessera/kernels/tensor.hpp"

namespace tessera::kernels {

/// Whether one kernel multiplies all groups of such rows, where every row of every matrix begins at
/// a multiple of 16 bytes, too: bfloat16 on devices. The host need not know the counts then.
bool groups_in_one_kernel(const at::Tensor& rows);

/// y [R, out]: rows of x [R, in], group after group, times the transpose of their group's matrix of
/// w [G, out, in]. `counts` [G] int64: rows of each group, R in all; 0 is allowed. They are in host
/// memory or on x's device, of which the host asks them if it multiplies group by group.
/// Differentiable in x and w. Each row's bits depend on its group's rows only. Throws
/// ContractViolation when shapes do not fit.
at::Tensor grouped_mm(const at::Tensor& x, const at::Tensor& w, const at::Tensor& counts);

/// Gradient of w: dy_g^T x_g for each group g, [G, out, in].
at::Tensor grouped_weight_gradient(const at::Tensor& dy, const at::Tensor& x,
                                   const at::Tensor& counts);

}  // namespace tessera::kernels
