// SPDX-License-Identifier: Apache-2.0
// The entries of the table that round to float8, which the host's table does not have.
#pragma once

#include "backend.hpp"

namespace tessera::sim {

at::Tensor largest_of_lines(const at::Tensor& x, kernels::ScaledLines lines);
kernels::Float8Scales float8_scales(const at::Tensor& largest, DType type, bool powers_of_two);
void float8_bytes(const at::Tensor& x, const at::Tensor& scales, DType type,
                  kernels::ByteOrder order, const at::Tensor& bytes);
kernels::ScaledBytes float8_rows(const at::Tensor& x, DType type, bool powers_of_two);
kernels::ScaledBothWays float8_both(const at::Tensor& x, DType type, bool powers_of_two);

}  // namespace tessera::sim
