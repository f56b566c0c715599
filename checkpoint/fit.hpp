// Does a checkpoint hold what the ranks want?
#pragma once

#include <filesystem>
#include <functional>
#include <vector>

#include "tensor_table.hpp"
#include "tessera/checkpoint/checkpoint.hpp"

namespace tessera::checkpoint {

/// Compares the stored tensors with those that some rank wants. Another shape, or a type that does not convert, is
/// always an Error(usage); missing and extra tensors are one under Policy::strict, lines for `options.log` under
/// Policy::warn. The message is a table of names, types and shapes.
void check_fit(const std::filesystem::path& folder, const std::vector<TensorInfo>& stored, const TensorTable& wanted,
               const LoadOptions& options);

}  // namespace tessera::checkpoint
