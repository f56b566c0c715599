// SPDX-License-Identifier: Apache-2.0
// Rotary position embedding (Su et al. 2021, arXiv:2104.09864) of interleaved pairs, with
// Llama 3.1's frequency scaling.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace tessera::kernels {

/// Rotates each pair (x[2i], x[2i+1]) of x [B, S, H, hd] at position s by the angle whose cosine
/// and sine are cos[s, i], sin[s, i]. cos, sin [S, hd/2]: f64 where x is f64, otherwise f32.
/// Differentiable in x: the gradient is rotated back. x may be a view whose heads lie together (a
/// part of a packed wqkv result); the result is contiguous.
at::Tensor rope(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin);

/// [B, S, H, hd] each.
struct Heads {
  at::Tensor queries, keys, values;
};

/// What attention takes of the products [B S, H hd] of queries, keys and values: rope() of the
/// first two, in one pass. The products are taken over: no memory is needed for the result where
/// nothing else shows theirs. If they are neighbouring columns of one matrix, so are their
/// gradients.
Heads rope_heads(std::vector<at::Tensor> products, std::int64_t batch, std::int64_t head_dim,
                 const at::Tensor& cos, const at::Tensor& sin);

/// Llama 3.1's scaling: wavelengths above original/low are divided by factor, those below
/// original/high are kept.
struct RopeScaling {
  double factor = 8.0;
  double low_frequency_factor = 1.0;
  double high_frequency_factor = 4.0;
  std::int64_t original_max_positions = 8192;
};

struct RopeTables {
  at::Tensor cos;  ///< [seq, head_dim/2]
  at::Tensor sin;  ///< [seq, head_dim/2]
};

/// Angular frequencies [head_dim/2] after scaling: 1/theta^(2i/head_dim), in f32 step by step as
/// TorchTitan and Hugging Face compute them (dtype f32), or in f64 throughout (dtype f64). Host
/// tensor.
at::Tensor rope_frequencies(std::int64_t head_dim, double theta,
                            const std::optional<RopeScaling>& scaling, at::ScalarType dtype);

/// Tables of positions [first_position, first_position + seq), host tensors of dtype f32 or f64.
/// Positions times frequency and the trigonometry happen in that dtype, as the references do.
RopeTables rope_tables(std::int64_t seq, std::int64_t head_dim, double theta,
                       const std::optional<RopeScaling>& scaling, at::ScalarType dtype,
                       std::int64_t first_position = 0);

}  // namespace tessera::kernels
