// SPDX-License-Identifier: Apache-2.0
#include "layout.hpp"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <type_traits>
#include <utility>

namespace tessera::hf {
namespace {

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

/// The elements of a box of three dimensions, in order: how far one is from the next in the stored
/// box, dimension by dimension, and where the first one is.
struct Strides {
  std::array<std::int64_t, 3> extent{1, 1, 1}, stride{};
  std::int64_t first = 0;
};

Strides strides_of(HfLayout layout, const Shape& extent) {
  Strides strides;
  for (std::size_t d = 0; d < extent.size(); ++d) strides.extent[3 - extent.size() + d] = extent[d];
  const auto [outer, rows, columns] = strides.extent;
  const std::int64_t step = twin(layout) >= 0 ? 2 : 1;
  if (transposes(layout))
    strides.stride = {rows * columns * step, step, rows * step};
  else
    strides.stride = {rows * columns * step, columns * step, step};
  strides.first = twin(layout) == 1 ? 1 : 0;
  return strides;
}

/// Calls visit(byte in ours, byte in the stored box) for each element.
template <class Visit>
void for_each_element(HfLayout layout, const Shape& extent, std::size_t bytes, const Visit& visit) {
  const Strides at = strides_of(layout, extent);
  std::size_t ours = 0;
  for (std::int64_t i = 0; i < at.extent[0]; ++i)
    for (std::int64_t j = 0; j < at.extent[1]; ++j)
      for (std::int64_t k = 0; k < at.extent[2]; ++k, ours += bytes)
        visit(ours, static_cast<std::size_t>(at.first + i * at.stride[0] + j * at.stride[1] +
                                             k * at.stride[2]) *
                        bytes);
}

/// Calls copy(integral constant of the size) for the sizes that elements have.
template <class Copy>
void with_size(std::size_t bytes, const Copy& copy) {
  using std::integral_constant;
  if (bytes == 8) return copy(integral_constant<std::size_t, 8>());
  if (bytes == 4) return copy(integral_constant<std::size_t, 4>());
  if (bytes == 2) return copy(integral_constant<std::size_t, 2>());
  copy(integral_constant<std::size_t, 1>());
}

}  // namespace

std::int64_t stored_row(std::int64_t row, std::int64_t head_dim) {
  const std::int64_t head = row / head_dim, within = row % head_dim;
  return head * head_dim + (within % 2) * (head_dim / 2) + within / 2;
}

std::int64_t tensor_count(const model::ParamSpec& spec) {
  return spec.hf_layout == HfLayout::each_expert ? spec.global_shape[0] : 1;
}

std::string tensor_name(const model::ParamSpec& spec, std::int64_t row) {
  if (spec.hf_layout != HfLayout::each_expert) return spec.hf_name;
  return fmt::format(fmt::runtime(spec.hf_name), row);
}

Shape tensor_shape(const model::ParamSpec& spec) {
  Shape shape = spec.global_shape;
  if (spec.hf_layout == HfLayout::each_expert) shape.erase(shape.begin());
  if (transposes(spec.hf_layout)) std::swap(shape[1], shape[2]);
  if (twin(spec.hf_layout) >= 0) shape.back() *= 2;
  return shape;
}

TensorSlice stored_box(const model::ParamSpec& spec, const TensorSlice& slice) {
  TensorSlice stored = slice;
  stored.global_shape = tensor_shape(spec);
  if (transposes(spec.hf_layout)) {
    std::swap(stored.box.offset[1], stored.box.offset[2]);
    std::swap(stored.box.extent[1], stored.box.extent[2]);
  }
  if (twin(spec.hf_layout) >= 0) {
    stored.box.offset.back() *= 2;
    stored.box.extent.back() *= 2;
  }
  return stored;
}

void take_out(HfLayout layout, const Shape& extent, std::size_t element_bytes,
              const std::byte* stored, std::byte* ours) {
  with_size(element_bytes, [&](auto bytes) {
    for_each_element(layout, extent, bytes, [&](std::size_t to, std::size_t from) {
      std::memcpy(ours + to, stored + from, bytes);
    });
  });
}

void put_in(HfLayout layout, const Shape& extent, std::size_t element_bytes, const std::byte* ours,
            std::byte* stored) {
  with_size(element_bytes, [&](auto bytes) {
    for_each_element(layout, extent, bytes, [&](std::size_t from, std::size_t to) {
      std::memcpy(stored + to, ours + from, bytes);
    });
  });
}

}  // namespace tessera::hf
