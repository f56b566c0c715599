// SPDX-License-Identifier: Apache-2.0
#include "embedding.hpp"

#include "cuda/launchers.hpp"
#include "cuda/stream_of.hpp"
#include "device_results.hpp"
#include "typed.hpp"

namespace tessera::kernels::device {

at::Tensor embedding(const at::Tensor& table, const at::Tensor& tokens, std::int64_t row_begin) {
  const at::Tensor made = embedding_rows(table, tokens);
  with_type(table.scalar_type(), [&]<class T>(T) {
    embedding(const_pointer<T>(table), const_pointer<std::int64_t>(tokens),
              {tokens.numel(), table.size(0), table.size(1), row_begin}, pointer<T>(made),
              stream_of(table));
  });
  return made;
}

at::Tensor embedding_backward(const at::Tensor& gradient, const SortedTokens& sorted,
                              VocabularyRows of) {
  const at::Tensor made = table_gradient(gradient, of);
  with_type(gradient.scalar_type(), [&]<class T>(T) {
    embedding_backward(
        const_pointer<T>(gradient),
        {const_pointer<std::int64_t>(sorted.tokens), const_pointer<std::int64_t>(sorted.places)},
        {gradient.size(0), of.rows, gradient.size(1), of.row_begin}, pointer<T>(made),
        stream_of(gradient));
  });
  return made;
}

}  // namespace tessera::kernels::device
