// SPDX-License-Identifier: Apache-2.0
#include "save/shard_plan.hpp"

#include <algorithm>
#include <unordered_map>

#include "tessera/base/crc32c.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/shard.hpp"

namespace tessera::checkpoint {
namespace {

constexpr std::int64_t kSmallestPartBytes = std::int64_t{1} << 20;

/// A path of HDF5: components without "." and "#" (which numbers the boxes of one tensor in a
/// file), none of our own.
bool is_good_name(std::string_view name) {
  const auto is_bad = [](char c) {
    return static_cast<unsigned char>(c) < 0x21 || c == '#' || c == 0x7f;
  };
  if (name.empty() || name.size() > 1024 || std::any_of(name.begin(), name.end(), is_bad))
    return false;
  if (name.starts_with("tessera/") || name == "tessera") return false;
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('/', begin), name.size());
    const std::string_view component = name.substr(begin, end - begin);
    if (component.empty() || component == "." || component == "..") return false;
    begin = end + 1;
  }
  return true;
}

/// Number from which the parts of a box are dealt out, the same on all replicas.
std::uint32_t first_owner(const TensorSlice& slice) {
  const std::uint32_t crc = crc32c(0, slice.name.data(), slice.name.size());
  return crc32c(crc, slice.offset.data(), slice.offset.size() * sizeof(std::int64_t));
}

/// The first dimension that can be cut; those before it have extent 1, so a range of it is
/// contiguous.
std::size_t dimension_to_cut(const Shape& extent) {
  const auto at = std::find_if(extent.begin(), extent.end(), [](std::int64_t n) { return n > 1; });
  return static_cast<std::size_t>(at - extent.begin());
}

}  // namespace

void check_views(std::span<const SliceView> views) {
  for (const SliceView& view : views) {
    const TensorSlice& slice = view.slice;
    require(is_good_name(slice.name), ExitCode::usage,
            "\"{}\" cannot name a tensor in a checkpoint; use group/name", slice.name);
    require(slice.global_shape.size() <= 32 &&
                checked_bytes(slice.global_shape, slice.dtype).has_value(),
            ExitCode::usage, "tensor {} has the impossible shape {}", slice.name,
            to_string(slice.global_shape));
    require(lies_in(box_of(slice), slice.global_shape), ExitCode::usage,
            "box {} leaves tensor {} {}", to_string(box_of(slice)), slice.name,
            to_string(slice.global_shape));
    require(view.replicas >= 1 && view.replica >= 0 && view.replica < view.replicas,
            ExitCode::usage, "tensor {}: replica {} of {}", slice.name, view.replica,
            view.replicas);
    require(view.data != nullptr || element_count(slice.extent) == 0, ExitCode::usage,
            "tensor {} has no data", slice.name);
  }
}

Piece owned_part(const SliceView& view) {
  const TensorSlice& slice = view.slice;
  const auto width = static_cast<std::int64_t>(size_of(slice.dtype));
  Piece piece{&slice, static_cast<const std::byte*>(view.data), box_of(slice),
              element_count(slice.extent) * width};
  if (view.replicas == 1 || piece.bytes == 0) return piece;
  const std::size_t dim = dimension_to_cut(slice.extent);
  const std::int64_t rows = dim < slice.extent.size() ? slice.extent[dim] : 1;
  const std::int64_t parts = std::clamp<std::int64_t>(piece.bytes / kSmallestPartBytes, 1,
                                                      std::min<std::int64_t>(view.replicas, rows));
  const auto replicas = static_cast<std::uint32_t>(view.replicas);
  const std::int64_t part =
      (static_cast<std::uint32_t>(view.replica) + replicas - first_owner(slice) % replicas) %
      replicas;
  if (part >= parts) return {&slice, nullptr, piece.box, 0};
  if (parts == 1) return piece;
  const Range range = chunk_of(rows, parts, part);
  const std::int64_t row_bytes = piece.bytes / rows;
  piece.data += range.begin * row_bytes;
  piece.bytes = range.size * row_bytes;
  piece.box.offset[dim] += range.begin;
  piece.box.extent[dim] = range.size;
  return piece;
}

std::vector<Piece> owned_pieces(std::span<const SliceView> views) {
  std::vector<Piece> pieces;
  for (const SliceView& view : views)
    if (const Piece piece = owned_part(view); piece.bytes != 0) pieces.push_back(piece);
  return pieces;
}

TensorTable table_of(std::span<const SliceView> views, const std::vector<Piece>& pieces) {
  TensorTable table;
  for (const SliceView& view : views)
    table.add(view.slice.name, {view.slice.dtype, view.slice.global_shape, 0});
  for (const Piece& piece : pieces)
    table.add(piece.slice->name,
              {piece.slice->dtype, piece.slice->global_shape, element_count(piece.box.extent)});
  return table;
}

std::vector<std::int64_t> pack(const std::vector<Piece>& pieces,
                               const std::vector<TensorInfo>& tensors) {
  std::unordered_map<std::string_view, std::int64_t> numbers;
  for (const TensorInfo& tensor : tensors)
    numbers.emplace(tensor.name, static_cast<std::int64_t>(numbers.size()));
  std::vector<std::int64_t> words;
  for (const Piece& piece : pieces) {
    words.push_back(numbers.at(piece.slice->name));
    words.insert(words.end(), piece.box.offset.begin(), piece.box.offset.end());
    words.insert(words.end(), piece.box.extent.begin(), piece.box.extent.end());
  }
  return words;
}

std::vector<PlannedBox> unpack(const std::vector<std::int64_t>& words,
                               const std::vector<TensorInfo>& tensors) {
  std::vector<PlannedBox> boxes;
  for (auto at = words.begin(); at != words.end();) {
    PlannedBox planned;
    planned.tensor = *at++;
    const TensorInfo& tensor = tensors[static_cast<std::size_t>(planned.tensor)];
    const auto dims = static_cast<std::ptrdiff_t>(tensor.shape.size());
    planned.box = {Shape(at, at + dims), Shape(at + dims, at + 2 * dims)};
    planned.bytes =
        element_count(planned.box.extent) * static_cast<std::int64_t>(size_of(tensor.dtype));
    boxes.push_back(std::move(planned));
    at += 2 * dims;
  }
  return boxes;
}

}  // namespace tessera::checkpoint
