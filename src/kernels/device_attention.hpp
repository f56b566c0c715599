// SPDX-License-Identifier: Apache-2.0
// Attention on a GPU, or with shapes alone; contracts as in tessera/kernels/attention_part.hpp.
#pragma once

#include "tessera/kernels/attention_part.hpp"

namespace tessera::kernels::device {

bool attends_in_bands(const AttentionPart& part);
AttentionValue attention_part(const AttentionPart& part);
AttentionGradients attention_part_backward(const AttentionPart& part, const AttentionValue& merged,
                                           const at::Tensor& grad_out);

}  // namespace tessera::kernels::device
