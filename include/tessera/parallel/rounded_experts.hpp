// SPDX-License-Identifier: Apache-2.0
// Products of experts whose operands are rounded to 8 bits, as torchao's prototype
// (torchao.prototype.moe_training) rounds them: e4m3, with scales that are powers of two. By recipe
// `rowwise`, a row of tokens, a row or column of an expert's matrix, and a column of an expert's
// tokens each have a scale; by `mxfp8_rceil`, each 32 elements of these. Products are emulated on
// every device: of the values that the bytes stand for, rounded once.
//
// Where tensor parallelism cuts experts, a row or column of the whole matrix has one scale. The
// columns of tokens are those that this rank's experts got, in their order.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include "tessera/parallel/rounded_linear.hpp"

namespace tessera::parallel {

/// expert_linear(), rounded. Recipe `rowwise` is collective over the ranks that share experts, in
/// forward and for the input's gradient.
at::Tensor rounded_expert_linear(const at::Tensor& x, const at::Tensor& weight,
                                 const at::Tensor& groups, const LinearRounding& how,
                                 WeightGradients& gradients);

/// The values of that product, without a graph.
at::Tensor rounded_expert_product(const at::Tensor& x, const at::Tensor& weight,
                                  const at::Tensor& groups, const LinearRounding& how);

}  // namespace tessera::parallel
