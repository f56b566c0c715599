// SPDX-License-Identifier: Apache-2.0
// A small checkpoint for tests: values that say where they belong, cut like a rank of a mesh would
// hold them.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tessera/base/box.hpp"
#include "tessera/base/crc32c.hpp"
#include "tessera/base/shard.hpp"
#include "tessera/checkpoint/slice_view.hpp"

namespace tessera::checkpoint {

/// The bit pattern of element `n` of the tensor whose name has the checksum `seed`: any will do,
/// NaNs too, since saving and loading must keep it.
inline std::uint64_t pattern(std::uint64_t seed, std::int64_t n) {
  std::uint64_t h = seed ^ (static_cast<std::uint64_t>(n) * 0x9e3779b97f4a7c15ull);
  h ^= h >> 29, h *= 0xbf58476d1ce4e5b9ull;
  return h ^ (h >> 32);
}

/// Memory for one view: filled with its patterns, or blank.
class Held {
 public:
  Held(TensorSlice slice, bool filled, int replica = 0, int replicas = 1)
      : bytes_(bytes_of(slice), std::byte{0xa5}),
        view_{std::move(slice), bytes_.data(), replica, replicas} {
    if (filled) bytes_ = expected();
    view_.data = bytes_.data();
  }
  Held(Held&& other) noexcept : bytes_(std::move(other.bytes_)), view_(std::move(other.view_)) {
    view_.data = bytes_.data();
  }
  Held& operator=(Held&& other) noexcept {
    bytes_ = std::move(other.bytes_), view_ = std::move(other.view_);
    view_.data = bytes_.data();
    return *this;
  }
  const SliceView& view() const { return view_; }
  bool is_right() const { return bytes_ == expected(); }

 private:
  std::vector<std::byte> expected() const {
    const TensorSlice& slice = view_.slice;
    const std::size_t width = size_of(slice.dtype);
    std::vector<std::byte> bytes(bytes_of(slice));
    const std::uint64_t seed = crc32c(0, slice.name.data(), slice.name.size());
    for (std::size_t n = 0; n * width < bytes.size(); ++n) {
      std::int64_t number = 0, stride = 1, rest = static_cast<std::int64_t>(n);
      for (std::size_t d = slice.box.extent.size(); d-- > 0;
           rest /= slice.box.extent[d], stride *= slice.global_shape[d])
        number += (slice.box.offset[d] + rest % slice.box.extent[d]) * stride;
      const std::uint64_t value = pattern(seed, number);
      std::memcpy(bytes.data() + n * width, &value, width);
    }
    return bytes;
  }
  std::vector<std::byte> bytes_;
  SliceView view_;
};

struct SampleTensor {
  std::string name;
  DType dtype;
  Shape shape;
};

/// Even and uneven, tiny and larger than a block of 4 MiB, one to three dimensions, scalar and
/// without elements.
inline std::vector<SampleTensor> sample_tensors(bool large = false) {
  std::vector<SampleTensor> tensors{
      {"model/tok_embeddings.weight", DType::f32, {37, 16}},
      {"model/layers.0.attention.wq.weight", DType::bf16, {24, 18}},
      {"model/layers.10.experts.w1", DType::f32, {4, 6, 5}},
      {"model/layers.2.norm.weight", DType::bf16, {3}},
      {"model/step_scale", DType::f64, {}},
      {"model/none", DType::f32, {0, 5}},
      {"optimizer/exp_avg/tok_embeddings.weight", DType::f32, {37, 16}},
      {"optimizer/exp_avg_sq/tok_embeddings.weight", DType::f32, {37, 16}},
      {"optimizer/steps", DType::i64, {1}}};
  if (large) tensors.push_back({"model/output.weight", DType::f32, {1031, 2100}});  // 8.7 MB
  return tensors;
}

/// How a job cuts tensors: dimension 0 over `row_ranks`, dimension 1 over `column_ranks`, the rest
/// replicated.
struct Cut {
  int row_ranks = 1, column_ranks = 1, copies = 1;
  int ranks() const { return row_ranks * column_ranks * copies; }
};

/// What rank `rank` of the cut holds. Tensors of fewer than two dimensions are replicated over the
/// column ranks.
inline std::vector<Held> hold(const std::vector<SampleTensor>& tensors, const Cut& cut, int rank,
                              bool filled) {
  const int column = rank % cut.column_ranks, row = rank / cut.column_ranks % cut.row_ranks;
  const int copy = rank / (cut.column_ranks * cut.row_ranks);
  std::vector<Held> held;
  for (const SampleTensor& tensor : tensors) {
    TensorSlice slice{tensor.name, tensor.dtype, tensor.shape, whole(tensor.shape)};
    int replica = copy, replicas = cut.copies;
    const auto cut_dim = [&](std::size_t dim, int ranks, int index) {
      if (dim < tensor.shape.size()) {
        const Range range = chunk_of(tensor.shape[dim], ranks, index);
        slice.box.offset[dim] = range.begin, slice.box.extent[dim] = range.size;
      } else {
        replica = replica * ranks + index, replicas *= ranks;
      }
    };
    cut_dim(0, cut.row_ranks, row);
    cut_dim(1, cut.column_ranks, column);
    held.emplace_back(std::move(slice), filled, replica, replicas);
  }
  return held;
}

inline std::vector<SliceView> views_of(const std::vector<Held>& held) {
  std::vector<SliceView> views;
  for (const Held& h : held) views.push_back(h.view());
  return views;
}

inline bool all_right(const std::vector<Held>& held) {
  for (const Held& h : held)
    if (!h.is_right()) return false;
  return true;
}

}  // namespace tessera::checkpoint
