// SPDX-License-Identifier: Apache-2.0
// How embedding() is computed on tensors that were checked: contiguous, and of types that fit.
#pragma once

#include "tessera/kernels/tensor.hpp"

namespace tessera::kernels {

/// Rows row_begin to row_begin + rows of a vocabulary.
struct VocabularyRows {
  std::int64_t row_begin, rows;
};

/// Tokens in ascending order, and where each was before; equal ones stay in order. Both int64.
struct SortedTokens {
  at::Tensor tokens, places;
};

/// table [V, D], tokens [T] -> [T, D].
using Embedding = at::Tensor(const at::Tensor& table, const at::Tensor& tokens,
                             std::int64_t row_begin);
/// gradient [T, D] -> [V, D], zero for rows without a token.
using EmbeddingBackward = at::Tensor(const at::Tensor& gradient, const SortedTokens& sorted,
                                     VocabularyRows of);

namespace host {
Embedding embedding;
EmbeddingBackward embedding_backward;
}  // namespace host

/// In builds with CUDA: a kernel each.
namespace device {
Embedding embedding;
EmbeddingBackward embedding_backward;
}  // namespace device

}  // namespace tessera::kernels
