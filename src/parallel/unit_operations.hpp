// SPDX-License-Identifier: Apache-2.0
// What the cells of one pass through a unit ask for, on this rank: `inner`, with what the unit
// itself takes care of.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tessera/model/operations.hpp"
#include "tessera/parallel/chunked_products.hpp"
#include "tessera/parallel/recompute.hpp"

namespace tessera::parallel {

class UnitOperations final : public model::Operations {
 public:
  explicit UnitOperations(const model::Operations& inner) : inner_(inner) {}

  Remakes* remakes = nullptr;  ///< gets what can be made again, if not null

  /// Products of whole tokens with these weights can be.
  void remake_products(std::span<const c10::TensorImpl* const> weights) { remade_ = weights; }
  /// The next call of products() gets this rank's tokens and gathers them, chunk by chunk.
  void gather_next(const TokenChunks& chunks) { gather_ = chunks; }
  /// The last call of product() of this cell leaves partial sums, which it is to sum and cut, chunk
  /// by chunk.
  void reduce_next(const TokenChunks& chunks) { reduce_ = chunks; }
  /// Has a product summed since reduce_next()? An embedding has none, so its sums are left to the
  /// caller.
  bool take_reduced();
  /// Throws a broken contract if a cell that was to gather multiplied nothing.
  void expect_done(const std::string& cell) const;

  std::vector<at::Tensor> products(const at::Tensor& x,
                                   std::span<const model::Weight> weights) const override;
  std::function<at::Tensor()> product_again(const at::Tensor& x,
                                            const model::Weight& weight) const override {
    return inner_.product_again(x, weight);
  }
  at::Tensor expert_product(const at::Tensor& x, const model::Weight& weight,
                            const at::Tensor& groups) const override;
  std::function<at::Tensor()> expert_product_again(const at::Tensor& x, const model::Weight& weight,
                                                   const at::Tensor& groups) const override {
    return inner_.expert_product_again(x, weight, groups);
  }
  at::Tensor attention(const model::Attention& input) const override {
    return inner_.attention(input);
  }
  void remakable(const at::Tensor& made, std::function<at::Tensor()> remake) const override;

 private:
  bool remade(const model::Weight& weight) const;

  const model::Operations& inner_;
  std::span<const c10::TensorImpl* const> remade_;
  mutable std::optional<TokenChunks> gather_, reduce_;
  mutable bool reduced_ = false;
};

}  // namespace tessera::parallel
