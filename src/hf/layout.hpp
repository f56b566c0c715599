// SPDX-License-Identifier: Apache-2.0
// Where the elements of our parameters are in the tensors of Hugging Face files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "tessera/base/tensor_slice.hpp"
#include "tessera/model_spec/param_spec.hpp"

namespace tessera::hf {

/// Rows of a head's part in a parameter with rope_heads > 0.
inline std::int64_t head_dim_of(const model::ParamSpec& spec) {
  return spec.global_shape[0] / spec.rope_heads;
}

/// Row of a Hugging Face q or k projection that holds row `row` of ours. Ours interleaves the pairs
/// that RoPE rotates, theirs keeps the two halves of each head apart: ours (h, 2i + p) is theirs
/// (h, p * head_dim / 2 + i).
std::int64_t stored_row(std::int64_t row, std::int64_t head_dim);

/// Stored tensors of the parameter: one for each expert, or one.
std::int64_t tensor_count(const model::ParamSpec& spec);
/// Name of the stored tensor that holds row `row` of the parameter.
std::string tensor_name(const model::ParamSpec& spec, std::int64_t row);
/// Shape of such a tensor.
Shape tensor_shape(const model::ParamSpec& spec);

/// The box of the stored tensor in which a box of the parameter is, for layouts other than `same`
/// and `each_expert`. Name and type are those of `box`.
TensorSlice stored_box(const model::ParamSpec& spec, const TensorSlice& slice);
/// Copies the elements of a box of ours, of `extent`, out of the stored box.
void take_out(model::HfLayout layout, const Shape& extent, std::size_t element_bytes,
              const std::byte* stored, std::byte* ours);
/// Copies them into it, and leaves what is another parameter's.
void put_in(model::HfLayout layout, const Shape& extent, std::size_t element_bytes,
            const std::byte* ours, std::byte* stored);

}  // namespace tessera::hf
