// SPDX-License-Identifier: Apache-2.0
// Boxes of our parameters in the tensors of Hugging Face files, whose layout differs.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include <string>

#include "hf_source.hpp"
#include "tessera/base/tensor_slice.hpp"
#include "tessera/model_spec/param_spec.hpp"

namespace tessera::train {

/// Rows of a head's part in a parameter with rope_heads > 0.
inline std::int64_t head_dim_of(const model::ParamSpec& spec) {
  return spec.global_shape[0] / spec.rope_heads;
}

/// Name of the tensor that holds row `row` of the parameter.
std::string hf_tensor_name(const model::ParamSpec& spec, std::int64_t row);
/// Shape of such a tensor.
Shape hf_tensor_shape(const model::ParamSpec& spec);

/// Null when there is none of that name. Tied weights have one table for both ends.
const checkpoint::SafetensorsEntry* hf_entry(const HfSource& reader, const std::string& name);

/// "" when the files hold the tensor, or tensors, of a parameter in the right shape; else what is
/// wrong, in words.
std::string hf_misfit(const HfSource& reader, const model::ParamSpec& spec);
std::string hf_misfit(const HfSource& reader, const std::string& name, const Shape& shape);

/// Reads the box of our parameter into `out` (its shape and type, host memory). `path` is for
/// messages. Throws Error(data) naming a missing or misshapen tensor.
void read_hf_box(const HfSource& reader, const model::ParamSpec& spec, const TensorSlice& box,
                 at::Tensor out, const std::string& path);

}  // namespace tessera::train
