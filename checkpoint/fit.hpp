// SPDX-License-Identifier: Apache-2.0
// Does a checkpoint hold what the ranks want?
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "tensor_table.hpp"
#include "tessera/checkpoint/checkpoint.hpp"

namespace tessera::checkpoint {

inline bool is_left_out(const LoadOptions& options, std::string_view name) {
  return options.leave_out && options.leave_out(name);
}

/// Compares the stored tensors with those that some rank wants, but for those that the options
/// leave out. What differs is an Error(usage) under Policy::strict, lines for `options.log` under
/// Policy::warn. The message is a table of names, types and shapes.
void check_fit(const std::filesystem::path& folder, const std::vector<TensorInfo>& stored,
               const TensorTable& wanted, const LoadOptions& options);

}  // namespace tessera::checkpoint
