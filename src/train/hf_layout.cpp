// SPDX-License-Identifier: Apache-2.0
#include "hf_layout.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tessera/base/error.hpp"
#include "tessera/train/hf_weights.hpp"

namespace tessera::train {
namespace {

using at::Tensor;
using model::HfLayout;

bool transposes(HfLayout layout) {
  return layout == HfLayout::transposed || layout == HfLayout::even_transposed ||
         layout == HfLayout::odd_transposed;
}

/// 0 or 1: which columns of a tensor that holds two parameters; -1: it holds one.
int twin(HfLayout layout) {
  if (layout == HfLayout::even || layout == HfLayout::even_transposed) return 0;
  return layout == HfLayout::odd || layout == HfLayout::odd_transposed ? 1 : -1;
}

const checkpoint::SafetensorsEntry& find(const HfSource& reader, const model::ParamSpec& spec,
                                         const std::string& name, const std::string& path) {
  const checkpoint::SafetensorsEntry* entry = hf_entry(reader, name);
  require(entry, ExitCode::data, "{} has no tensor {} (for {})", path, name, spec.fqn);
  require(entry->shape == hf_tensor_shape(spec), ExitCode::data,
          "{}: {} differs in shape from the model's {}; are these the weights of another model?",
          path, entry->name, spec.fqn);
  return *entry;
}

/// Row by row where RoPE's order differs.
void read_same(const HfSource& reader, const model::ParamSpec& spec, TensorSlice box, Tensor out) {
  if (spec.rope_heads == 0) {
    reader.read(box, out.data_ptr());
    return;
  }
  const std::int64_t first = box.offset[0], rows = box.extent[0];
  box.extent[0] = 1;
  for (std::int64_t row = 0; row < rows; ++row) {
    box.offset[0] = hf_row(first + row, head_dim_of(spec));
    reader.read(box, out[row].data_ptr());
  }
}

void read_experts(const HfSource& reader, const model::ParamSpec& spec, const TensorSlice& box,
                  Tensor out, const std::string& path) {
  const auto behind = [](const Shape& shape) { return Shape(shape.begin() + 1, shape.end()); };
  TensorSlice one{"", box.dtype, behind(box.global_shape), behind(box.offset), behind(box.extent)};
  for (std::int64_t e = 0; e < box.extent[0]; ++e) {
    one.name = find(reader, spec, hf_tensor_name(spec, box.offset[0] + e), path).name;
    reader.read(one, out[e].data_ptr());
  }
}

/// Dims 1 and 2 exchanged, every other column, or both.
void read_rearranged(const HfSource& reader, const model::ParamSpec& spec, TensorSlice box,
                     Tensor out) {
  box.global_shape = hf_tensor_shape(spec);
  if (transposes(spec.hf_layout)) {
    std::swap(box.offset[1], box.offset[2]);
    std::swap(box.extent[1], box.extent[2]);
  }
  if (twin(spec.hf_layout) >= 0) {
    box.offset.back() *= 2;
    box.extent.back() *= 2;
  }
  Tensor stored = at::empty(box.extent, out.options());
  reader.read(box, stored.data_ptr());
  if (const int which = twin(spec.hf_layout); which >= 0)
    stored = stored.slice(-1, which, std::nullopt, 2);
  out.copy_(transposes(spec.hf_layout) ? stored.transpose(1, 2) : stored);
}

}  // namespace

std::string hf_tensor_name(const model::ParamSpec& spec, std::int64_t row) {
  if (spec.hf_layout != HfLayout::each_expert) return spec.hf_name;
  return fmt::format(fmt::runtime(spec.hf_name), row);
}

Shape hf_tensor_shape(const model::ParamSpec& spec) {
  Shape shape = spec.global_shape;
  if (spec.hf_layout == HfLayout::each_expert) shape.erase(shape.begin());
  if (transposes(spec.hf_layout)) std::swap(shape[1], shape[2]);
  if (twin(spec.hf_layout) >= 0) shape.back() *= 2;
  return shape;
}

const checkpoint::SafetensorsEntry* hf_entry(const HfSource& reader, const std::string& name) {
  const checkpoint::SafetensorsEntry* entry = reader.find(name);
  return !entry && name == "lm_head.weight" ? reader.find("model.embed_tokens.weight") : entry;
}

std::string hf_misfit(const HfSource& reader, const std::string& name, const Shape& shape) {
  const checkpoint::SafetensorsEntry* entry = hf_entry(reader, name);
  if (!entry) return fmt::format("there is no {}", name);
  if (entry->shape == shape) return "";
  return fmt::format("{} is [{}] and not [{}]", entry->name, fmt::join(entry->shape, ", "),
                     fmt::join(shape, ", "));
}

std::string hf_misfit(const HfSource& reader, const model::ParamSpec& spec) {
  const std::int64_t tensors = spec.hf_layout == HfLayout::each_expert ? spec.global_shape[0] : 1;
  for (std::int64_t row = 0; row < tensors; ++row)
    if (std::string misfit = hf_misfit(reader, hf_tensor_name(spec, row), hf_tensor_shape(spec));
        !misfit.empty())
      return misfit;
  return "";
}

void read_hf_box(const HfSource& reader, const model::ParamSpec& spec, const TensorSlice& box,
                 Tensor out, const std::string& path) {
  if (spec.hf_layout == HfLayout::each_expert) {
    read_experts(reader, spec, box, out, path);
    return;
  }
  TensorSlice stored = box;
  stored.name = find(reader, spec, spec.hf_name, path).name;
  if (out.numel() == 0) return;
  spec.hf_layout == HfLayout::same ? read_same(reader, spec, stored, out)
                                   : read_rearranged(reader, spec, stored, out);
}

}  // namespace tessera::train
