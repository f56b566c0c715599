// SPDX-License-Identifier: Apache-2.0
#include "format/combined_writes.hpp"

namespace tessera::checkpoint {
namespace {

constexpr std::size_t kSmallBytes = std::size_t{64} << 10, kMostKeptBytes = std::size_t{1} << 20;

}  // namespace

void CombinedWrites::write(const void* data, std::size_t bytes, std::int64_t offset) {
  const bool follows = !kept_.empty() && begin_ + static_cast<std::int64_t>(kept_.size()) == offset;
  if (!follows || kept_.size() + bytes > kMostKeptBytes) flush();
  if (bytes > kSmallBytes) {
    flush();
    file_.write(data, bytes, offset);
    return;
  }
  if (kept_.empty()) begin_ = offset;
  const auto* from = static_cast<const std::byte*>(data);
  kept_.insert(kept_.end(), from, from + bytes);
}

void CombinedWrites::flush() {
  if (!kept_.empty()) file_.write(kept_.data(), kept_.size(), begin_);
  kept_.clear();
}

}  // namespace tessera::checkpoint
