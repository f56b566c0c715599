// SPDX-License-Identifier: Apache-2.0
// Embedding over a piece of the vocabulary.
#pragma once

#include "tessera/model/cell.hpp"

namespace tessera::model {

/// out [T, dim]: row tokens[t] of the whole table where this piece holds it, else zero; the sum
/// over the pieces of all tensor-parallel ranks is the embedding.
inline at::Tensor vocabulary_embedding(const at::Tensor& tokens, const Weight& table, bool whole) {
  if (whole) return at::embedding(table.value, tokens);
  const at::Tensor local = tokens - table.row_begin;
  const at::Tensor elsewhere = local.lt(0).logical_or_(local.ge(table.value.size(0)));
  return at::embedding(table.value, local.masked_fill(elsewhere, 0))
      .masked_fill(elsewhere.unsqueeze(1), 0);
}

}  // namespace tessera::model
