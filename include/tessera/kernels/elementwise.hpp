// SPDX-License-Identifier: Apache-2.0
// Flat loops over whole tensors: conversion, accumulation, sums of squares. Host and device; f64,
// f32, bf16.
#pragma once

#include "tessera/kernels/tensor.hpp"

namespace tessera::kernels {

/// destination <- source, converted (round to nearest even). Both contiguous, same number of
/// elements, same device.
void cast_into(const at::Tensor& destination, const at::Tensor& source);

/// destination (f32 or f64) += source (any of the three). Both contiguous, same number of elements,
/// same device.
void accumulate(const at::Tensor& destination, const at::Tensor& source);

/// Sum of squares in double, over fixed blocks of 65,536 elements added in order: same bits for any
/// number of threads, not for any sharding (that is ExactSum). Waits for the device.
double sum_of_squares(const at::Tensor& values);

}  // namespace tessera::kernels
