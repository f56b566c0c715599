// SPDX-License-Identifier: Apache-2.0
#include "tessera/kernels/embedding.hpp"

#include <ATen/ops/sort.h>

#include "backend.hpp"
#include "tessera/base/error.hpp"
#include "tessera/kernels/operation.hpp"

namespace tessera::kernels {
namespace {

using at::Tensor;

/// Of a table and tokens [T].
struct EmbeddingOperation final : Operation {
  explicit EmbeddingOperation(VocabularyRows of) : of_(of) {}

  std::vector<Tensor> forward(Kept& kept, std::span<const Tensor> inputs) override {
    kept.save({inputs[1]});
    return {backend_of(inputs[0]).embedding(inputs[0], inputs[1], of_.row_begin)};
  }
  std::vector<Tensor> backward(Kept& kept, std::vector<Tensor> gradients) override {
    if (!kept.needs_gradient(0)) return {{}, {}};
    const auto [tokens, places] =
        at::sort(kept.saved()[0], /*stable=*/true, /*dim=*/0, /*descending=*/false);
    const Tensor g = gradients[0].contiguous();
    return {backend_of(g).embedding_backward(g, {tokens, places}, of_), {}};
  }

 private:
  VocabularyRows of_;
};

}  // namespace

Tensor embedding(const Tensor& table, const Tensor& tokens, std::int64_t row_begin) {
  TESSERA_EXPECT(table.dim() == 2 && tokens.scalar_type() == at::kLong,
                 "a table has two dimensions, and tokens are int64");
  TESSERA_EXPECT(tokens.device() == table.device(), "tokens are where the table is");
  std::vector<std::int64_t> sizes = tokens.sizes().vec();
  sizes.push_back(table.size(1));
  return apply(EmbeddingOperation({row_begin, table.size(0)}),
               {table.contiguous(), tokens.contiguous().view(-1)})
      .view(sizes);
}

}  // namespace tessera::kernels
