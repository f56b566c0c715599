// SPDX-License-Identifier: Apache-2.0
// Which bytes this rank writes, and which the ranks of its file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "format/tensor_table.hpp"
#include "tessera/base/box.hpp"
#include "tessera/checkpoint/slice_view.hpp"

namespace tessera::checkpoint {

/// A non-empty box of a shard file.
struct PlannedBox {
  std::int64_t tensor = 0;  ///< number in the table of tensors
  Box box;
  std::int64_t bytes = 0;
  int writer = 0;                   ///< which of the file's ranks writes it
  const std::byte* data = nullptr;  ///< contiguous, where this rank is the writer
  std::int64_t offset = 0;          ///< in the file, once that is laid out
};

/// Checks the views as a caller gives them (a broken contract is an Error(usage) that names the
/// tensor).
void check_views(std::span<const SliceView> views);

/// The part of a view's box that this replica writes. A box of n MiB is cut into up to n parts
/// along its first dimension that can be cut, one for each replica; which replica begins depends on
/// the tensor's name, so that small boxes spread too. The parts of all replicas are disjoint and
/// make up the box. Nothing when this replica has no part, or the part is empty.
std::optional<SliceView> owned_part(const SliceView& view);

/// The parts of all views.
std::vector<SliceView> owned_parts(std::span<const SliceView> views);

/// All views' tensors with the elements that this rank writes.
TensorTable table_of(std::span<const SliceView> views, std::span<const SliceView> parts);

/// Parts as numbers, for messages to the ranks that write the same file, and the boxes back, in
/// the same order.
std::vector<std::int64_t> pack(std::span<const SliceView> parts,
                               const std::vector<TensorInfo>& tensors);
std::vector<PlannedBox> unpack(const std::vector<std::int64_t>& words,
                               const std::vector<TensorInfo>& tensors);

}  // namespace tessera::checkpoint
