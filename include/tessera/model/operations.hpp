// SPDX-License-Identifier: Apache-2.0
// What cells ask of whoever runs them: products with weights, attention. The defaults are one
// rank's; component `parallel` puts others in their place (weight gradients later, rings over a
// context, chunks that overlap with communication).
#pragma once

#include "tessera/kernels/tensor.hpp"

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace tessera::model {

/// This rank's piece of a parameter: `value` holds rows [row_begin, row_begin + value.size(0)) of
/// the whole.
struct Weight {
  at::Tensor value;
  std::int64_t row_begin = 0;
};

/// Attention of queries to keys of the same sequences; the last query is at the last key's
/// position, and no query looks at a later key (causal).
struct Attention {
  at::Tensor q;  ///< [B, S, H, hd]
  at::Tensor k,
      v;  ///< [B, S' >= S, Hkv, hd] and [B, S', Hkv, value dim]; key-value head j serves H / Hkv
          ///< query heads
  double scale = 0;         ///< of the products; 0 = hd^-0.5
  std::int64_t window = 0;  ///< > 0: a query looks at this many keys, its own included
  /// [H] logits that take part in each softmax and have no value; undefined = none
  at::Tensor sinks;
};

class Operations {
 public:
  virtual ~Operations() = default;
  /// x [T, in] times the transpose of each weight [out, in]: [T, out] each, which may be columns of
  /// one matrix.
  virtual std::vector<at::Tensor> products(const at::Tensor& x,
                                           std::span<const Weight> weights) const;
  /// What computes product(x, weight) again, without a graph; it may outlive this, but no weight.
  virtual std::function<at::Tensor()> product_again(const at::Tensor& x,
                                                    const Weight& weight) const;
  /// Rows of x [R, in], sorted by expert, times the transpose of their expert's matrix of weight
  /// [experts, out, in]: [R, out]. `groups`: see kernels::row_groups().
  virtual at::Tensor expert_product(const at::Tensor& x, const Weight& weight,
                                    const at::Tensor& groups) const;
  /// As product_again().
  virtual std::function<at::Tensor()> expert_product_again(const at::Tensor& x,
                                                           const Weight& weight,
                                                           const at::Tensor& groups) const;
  /// [B, S, H, value dim].
  virtual at::Tensor attention(const Attention& input) const;
  /// Says that `remake()` gives the values of `made` again, cheaply and from tensors that backward
  /// keeps anyway: to save memory, they may be dropped until then.
  virtual void remakable(const at::Tensor& made, std::function<at::Tensor()> remake) const;

  at::Tensor product(const at::Tensor& x, const Weight& weight) const {
    return products(x, std::span(&weight, 1))[0];
  }
};

/// One rank's operations.
const Operations& plain_operations();

}  // namespace tessera::model
