// SPDX-License-Identifier: Apache-2.0
#include "tessera/hf/export.hpp"

#include <algorithm>
#include <vector>

#include "layout.hpp"
#include "row_stream.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/log.hpp"
#include "tessera/hf/safetensors.hpp"

namespace tessera::hf {
namespace {

using model::HfLayout;
using Bytes = std::vector<std::byte>;

bool streamed(const model::ParamSpec& spec) { return spec.hf_layout == HfLayout::same; }

/// Whether another parameter, its partner, writes the tensor for both.
bool is_second_twin(const model::ParamSpec& spec) {
  return spec.hf_layout == HfLayout::odd || spec.hf_layout == HfLayout::odd_transposed;
}

/// Whole tensors, their rows permuted where RoPE asks for it.
std::vector<StreamedTensor> streamed_tensors(const model::ModelSpec& model, DType dtype) {
  std::vector<StreamedTensor> tensors;
  for (const model::ParamSpec& spec : model.params) {
    if (!streamed(spec)) continue;
    StreamedTensor tensor{"model/" + spec.fqn, spec.hf_name, dtype, {}};
    if (spec.rope_heads > 0)
      tensor.row_map = [head_dim = head_dim_of(spec)](std::int64_t row) {
        return stored_row(row, head_dim);
      };
    tensors.push_back(std::move(tensor));
  }
  for (const model::BufferSpec& buffer : model.buffers)
    if (!buffer.hf_name.empty())
      tensors.push_back({"model/" + buffer.fqn, buffer.hf_name, DType::f32, {}});
  return tensors;
}

/// The tensors of the file: those of experts each once, though two parameters may be in one.
std::vector<TensorInfo> entries_of(const checkpoint::WeightSource& source,
                                   const model::ModelSpec& model,
                                   const std::vector<StreamedTensor>& whole, DType dtype) {
  std::vector<TensorInfo> entries;
  for (const StreamedTensor& tensor : whole)
    entries.push_back({tensor.target, tensor.dtype, find_source(source, tensor.source).shape});
  for (const model::ParamSpec& spec : model.params)
    for (std::int64_t i = 0; !streamed(spec) && !is_second_twin(spec) && i < tensor_count(spec);
         ++i)
      entries.push_back({tensor_name(spec, i), dtype, tensor_shape(spec)});
  return entries;
}

/// One expert's part of a parameter.
TensorSlice box_of_expert(const model::ParamSpec& spec, std::int64_t expert, DType dtype) {
  TensorSlice slice{"model/" + spec.fqn, dtype, spec.global_shape, whole(spec.global_shape)};
  slice.box.offset[0] = expert;
  slice.box.extent[0] = 1;
  return slice;
}

Bytes read(const checkpoint::WeightSource& source, const TensorSlice& slice) {
  Bytes values(bytes_of(slice));
  source.read(slice, values.data());
  return values;
}

/// The parameter that fills the odd columns where `spec` fills the even ones; null if it fills all.
const model::ParamSpec* second_twin(const model::ModelSpec& model, const model::ParamSpec& spec) {
  const auto is_twin = [&](const model::ParamSpec& other) {
    return &other != &spec && other.hf_name == spec.hf_name;
  };
  const auto at = std::ranges::find_if(model.params, is_twin);
  return at == model.params.end() ? nullptr : &*at;
}

void export_expert(const checkpoint::WeightSource& source, const model::ModelSpec& model,
                   const model::ParamSpec& spec, std::int64_t expert, DType dtype,
                   SafetensorsWriter& writer) {
  const TensorSlice slice = box_of_expert(spec, expert, dtype);
  const std::int64_t elements = element_count(slice.box);
  if (spec.hf_layout == HfLayout::each_expert)
    return writer.write(tensor_name(spec, expert), 0, elements, read(source, slice).data());
  const TensorSlice stored = stored_box(spec, slice);
  const std::int64_t stored_elements = element_count(stored.box);
  Bytes values(static_cast<std::size_t>(stored_elements) * size_of(dtype));
  put_in(spec.hf_layout, slice.box.extent, size_of(dtype), read(source, slice).data(),
         values.data());
  if (const model::ParamSpec* twin = second_twin(model, spec))
    put_in(twin->hf_layout, slice.box.extent, size_of(dtype),
           read(source, box_of_expert(*twin, expert, dtype)).data(), values.data());
  writer.write(spec.hf_name, expert * stored_elements, stored_elements, values.data());
}

/// Biases of the choice that balancing made and Hugging Face's class has no place for.
void warn_of_lost_biases(const model::ModelSpec& model) {
  for (const model::BufferSpec& buffer : model.buffers)
    if (buffer.hf_name.empty()) {
      log::warning(
          "Hugging Face's files cannot store {} and similar tensors, which are not exported; "
          "without them the router may select other experts",
          buffer.fqn);
      return;
    }
}

}  // namespace

void export_weights(const checkpoint::WeightSource& source, const model::ModelSpec& model,
                    DType dtype, const std::filesystem::path& file) {
  const std::vector<StreamedTensor> whole = streamed_tensors(model, dtype);
  SafetensorsWriter writer(file, entries_of(source, model, whole, dtype));
  for (const StreamedTensor& tensor : whole) stream(source, tensor, writer);
  for (const model::ParamSpec& spec : model.params) {
    if (streamed(spec) || is_second_twin(spec)) continue;
    for (std::int64_t e = 0; e < spec.global_shape[0]; ++e)
      export_expert(source, model, spec, e, dtype, writer);
  }
  writer.finish();
  warn_of_lost_biases(model);
}

}  // namespace tessera::hf
