// SPDX-License-Identifier: Apache-2.0
// Attention of queries to *some* of their keys, in a form whose parts can be put together.
//
// A part gives the softmax over its own keys and the logarithm of its denominator; parts merge by
// L = log(exp(L1) + exp(L2)), O = exp(L1 - L) O1 + exp(L2 - L) O2 (Milakov and Gimelshein,
// https://arxiv.org/abs/1805.02867; Liu et al., https://arxiv.org/abs/2310.01889). Backward needs
// the merged O and L only (Dao et al., https://arxiv.org/abs/2205.14135): with P = exp(S - L) and D
// = rowsum(dO O), dS = P (dO V^T - D).
#pragma once

#include "tessera/kernels/tensor.hpp"

#include <ATen/SDPBackend.h>

namespace tessera::kernels {

/// Query i of Sq sees the keys from i + Sk - Sq - left to i + Sk - Sq + right: the last query and
/// the last key are at one position. A negative number is no bound.
struct Band {
  std::int64_t left = -1, right = -1;
};

/// The positions of all sequences, one behind the other, in runs that see themselves only.
struct AttentionSegments {
  at::Tensor begins;  ///< of each run, and the end of the last, in int32; undefined = no runs
  std::int64_t longest = 0;
};

/// Shapes: q [B, Sq, H, hd], k [B, Sk, Hkv, hd], v [B, Sk, Hkv, vd]; H is a multiple of Hkv, and
/// key-value head j serves the query heads from j H / Hkv.
struct AttentionPart {
  at::Tensor q, k, v;
  double scale = 1;
  bool causal = false;  ///< Sq = Sk, and query i sees keys 0..i
  at::Tensor mask;      ///< [Sq, Sk] bool, true = visible, some in each row; undefined = all
  /// Where attends_in_bands() only. Each query sees some key.
  Band band = {};
  AttentionSegments segments = {};  ///< Sq = Sk
};

struct AttentionValue {
  at::Tensor out;        ///< [B, Sq, H, vd]
  at::Tensor logsumexp;  ///< [B, Sq, H] in float32, for float64 in float64
};

struct AttentionGradients {
  at::Tensor q, k, v;  ///< of the shapes of the part
};

/// Whether a part of these q, k and v may have a band and segments: hidden scores cost nothing, and
/// one call takes a whole batch.
bool attends_in_bands(const AttentionPart& part);

/// The kernel that LibTorch's scaled_dot_product_attention would take on this GPU for a part
/// without mask, band and segments.
at::SDPBackend library_kernel(const AttentionPart& part);

/// In blocks: on GPUs by flash attention for half types, cuDNN's where LibTorch would take it and
/// there are neither windows nor segments, else LibTorch's; other types by products. On x86
/// processors by own vector code, else by LibTorch's flash attention where it can, else by
/// products. Own code computes bfloat16 in float32, and rounds the results.
AttentionValue attention_part(const AttentionPart& part);
/// `merged`: output and logarithm over all parts of these queries; `grad_out` is the gradient of
/// that output.
AttentionGradients attention_part_backward(const AttentionPart& part, const AttentionValue& merged,
                                           const at::Tensor& grad_out);

/// `out` of a part that holds all keys; differentiable in q, k and v. Keeps them, out and logsumexp
/// for backward.
at::Tensor attention(const AttentionPart& part);

/// The same by products, in float32 (float64), a bounded number of scores at a time. For any shape,
/// and the twin that the other is tested against.
AttentionValue attention_part_by_products(const AttentionPart& part);
AttentionGradients attention_part_by_products_backward(const AttentionPart& part,
                                                       const AttentionValue& merged,
                                                       const at::Tensor& grad_out);

}  // namespace tessera::kernels
