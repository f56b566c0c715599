// Which bytes this rank writes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "box.hpp"
#include "tensor_table.hpp"
#include "tessera/checkpoint/checkpoint.hpp"

namespace tessera::checkpoint {

/// A non-empty box that this rank writes, contiguous at `data`.
struct Piece {
  const TensorSlice* slice = nullptr;
  const std::byte* data = nullptr;
  Box box;
  std::int64_t bytes = 0;
};

/// Checks the views as a caller gives them (a broken contract is an Error(usage) that names the tensor).
void check_views(std::span<const SliceView> views);

/// The part of a view's box that this replica writes. A box of n MiB is cut into up to n parts along its first
/// dimension that can be cut, one for each replica; which replica begins depends on the tensor's name, so that small
/// boxes spread too. The parts of all replicas are disjoint and make up the box. An empty part has bytes == 0.
Piece owned_part(const SliceView& view);

/// The non-empty parts of all views.
std::vector<Piece> owned_pieces(std::span<const SliceView> views);

/// All views' tensors with the elements that this rank writes.
TensorTable table_of(std::span<const SliceView> views, const std::vector<Piece>& pieces);

}  // namespace tessera::checkpoint
