// SPDX-License-Identifier: Apache-2.0
// scaled_bytes.hpp and mx_scales.hpp on devices, by kernels of the
// backend for scales of rows, columns or all, else by LibTorch's operators: the host's bits.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include "tessera/kernels/mx_scales.hpp"
#include "tessera/kernels/scaled_bytes.hpp"

namespace tessera::kernels::on_device {

at::Tensor largest_magnitudes(const at::Tensor& x, ScaleBlock block);
at::Tensor scales_for(const at::Tensor& largest, DType type, bool powers_of_two);
MxScales mx_scales(const at::Tensor& largest, DType type, MxScale how);
void write_bytes(const at::Tensor& bytes, const at::Tensor& x, const at::Tensor& scales, DType type,
                 ScaleBlock block);
ScaledBytes to_bytes(const at::Tensor& x, const at::Tensor& scales, DType type, ScaleBlock block,
                     ByteOrder order = ByteOrder::rows);
ScaledBytes to_scaled_bytes(const at::Tensor& x, DType type, bool powers_of_two, ScaleBlock block,
                            ByteOrder order);
at::Tensor from_bytes(const ScaledBytes& x, at::ScalarType type);
at::Tensor scaled_mm(const ScaledBytes& a, const ScaledBytes& b, bool fast);

}  // namespace tessera::kernels::on_device
