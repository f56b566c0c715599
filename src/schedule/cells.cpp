// SPDX-License-Identifier: Apache-2.0
#include "cells.hpp"

#include <algorithm>

namespace tessera::schedule {
namespace {

std::uint64_t key_of(StageIndex stage, MicrobatchIndex microbatch) {
  return std::uint64_t{static_cast<std::uint32_t>(stage.value())} << 32 |
         static_cast<std::uint32_t>(microbatch.value());
}

std::vector<std::uint64_t> sorted_keys(const ActionLists& lists) {
  std::vector<std::uint64_t> keys;
  for (const ActionList& list : lists)
    for (const Action& action : list) keys.push_back(key_of(action.stage, action.microbatch));
  std::ranges::sort(keys);
  keys.erase(std::unique(keys.begin(), keys.end()),
             keys.end());  // clang 14 cannot take ranges::unique
  return keys;
}

}  // namespace

Cells::Cells(const ActionLists& lists, int stages) : stages_(stages) {
  std::size_t actions = 0;
  for (const ActionList& list : lists) {
    actions += list.size();
    for (const Action& action : list)
      microbatches_ = std::max(microbatches_, std::int64_t{action.microbatch.value()} + 1);
  }
  const std::size_t all =
      static_cast<std::size_t>(stages_) * static_cast<std::size_t>(microbatches_);
  if (all > actions) sparse_ = sorted_keys(lists);
  size_ = (all > actions ? sparse_.size() : all) + 1;
}

std::size_t Cells::found(StageIndex stage, MicrobatchIndex microbatch) const {
  const std::uint64_t key = key_of(stage, microbatch);
  const auto at = std::ranges::lower_bound(sparse_, key);
  return at != sparse_.end() && *at == key ? static_cast<std::size_t>(at - sparse_.begin())
                                           : size_ - 1;
}

}  // namespace tessera::schedule
