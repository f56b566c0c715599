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
  return crc32c(crc, slice.box.offset.data(), slice.box.offset.size() * sizeof(std::int64_t));
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
    require(lies_in(slice.box, slice.global_shape), ExitCode::usage, "box {} leaves tensor {} {}",
            to_string(slice.box), slice.name, to_string(slice.global_shape));
    require(view.replicas >= 1 && view.replica >= 0 && view.replica < view.replicas,
            ExitCode::usage, "tensor {}: replica {} of {}", slice.name, view.replica,
            view.replicas);
    require(view.data != nullptr || element_count(slice.box) == 0, ExitCode::usage,
            "tensor {} has no data", slice.name);
  }
}

std::optional<SliceView> owned_part(const SliceView& view) {
  const TensorSlice& slice = view.slice;
  const auto bytes = static_cast<std::int64_t>(bytes_of(slice));
  if (bytes == 0) return std::nullopt;
  SliceView own{slice, view.data};
  if (view.replicas == 1) return own;
  const Shape& extent = slice.box.extent;
  const std::size_t dim = dimension_to_cut(extent);
  const std::int64_t rows = dim < extent.size() ? extent[dim] : 1;
  const std::int64_t parts = std::clamp<std::int64_t>(bytes / kSmallestPartBytes, 1,
                                                      std::min<std::int64_t>(view.replicas, rows));
  const auto replicas = static_cast<std::uint32_t>(view.replicas);
  const std::int64_t part =
      (static_cast<std::uint32_t>(view.replica) + replicas - first_owner(slice) % replicas) %
      replicas;
  if (part >= parts) return std::nullopt;
  if (parts == 1) return own;
  const Range range = chunk_of(rows, parts, part);
  if (range.size == 0) return std::nullopt;
  own.data = static_cast<std::byte*>(view.data) + range.begin * (bytes / rows);
  own.slice.box.offset[dim] += range.begin;
  own.slice.box.extent[dim] = range.size;
  return own;
}

std::vector<SliceView> owned_parts(std::span<const SliceView> views) {
  std::vector<SliceView> parts;
  for (const SliceView& view : views)
    if (auto part = owned_part(view)) parts.push_back(std::move(*part));
  return parts;
}

TensorTable table_of(std::span<const SliceView> views, std::span<const SliceView> parts) {
  TensorTable table;
  for (const auto& [slice, data, replica, replicas] : views)
    table.add(slice.name, {slice.dtype, slice.global_shape, 0});
  for (const auto& [slice, data, replica, replicas] : parts)
    table.add(slice.name, {slice.dtype, slice.global_shape, element_count(slice.box)});
  return table;
}

std::vector<std::int64_t> pack(std::span<const SliceView> parts,
                               const std::vector<TensorInfo>& tensors) {
  std::unordered_map<std::string_view, std::int64_t> numbers;
  for (const TensorInfo& tensor : tensors)
    numbers.emplace(tensor.name, static_cast<std::int64_t>(numbers.size()));
  std::vector<std::int64_t> words;
  for (const SliceView& part : parts) {
    const Box& box = part.slice.box;
    words.push_back(numbers.at(part.slice.name));
    words.insert(words.end(), box.offset.begin(), box.offset.end());
    words.insert(words.end(), box.extent.begin(), box.extent.end());
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
    planned.bytes = element_count(planned.box) * static_cast<std::int64_t>(size_of(tensor.dtype));
    boxes.push_back(std::move(planned));
    at += 2 * dims;
  }
  return boxes;
}

}  // namespace tessera::checkpoint
