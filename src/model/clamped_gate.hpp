// SPDX-License-Identifier: Apache-2.0
// The activation of gpt-oss.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include "tessera/model_spec/decoder_shape.hpp"

namespace tessera::model {

/// gate, up [rows, hidden] -> (up' + 1) gate' sigmoid(alpha gate') of the same shape, where gate'
/// is at most the limit, and up' within it. Keeps gate and up for backward.
at::Tensor clamped_gate(const at::Tensor& gate, const at::Tensor& up, const ClampedGate& how);

}  // namespace tessera::model
