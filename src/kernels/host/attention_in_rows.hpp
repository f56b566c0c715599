// SPDX-License-Identifier: Apache-2.0
// Attention by the row functions of the instruction set; contracts as in attention_part.hpp.
#pragma once

#include "tessera/kernels/attention_part.hpp"

namespace tessera::kernels::host {

/// Whether the table that choose_host_kernels() chose has attention.
bool has_attention_rows();

AttentionValue attention_in_rows(const AttentionPart& part);
AttentionGradients attention_in_rows_backward(const AttentionPart& part,
                                              const AttentionValue& merged,
                                              const at::Tensor& grad_out);

}  // namespace tessera::kernels::host
