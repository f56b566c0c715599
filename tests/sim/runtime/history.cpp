// SPDX-License-Identifier: Apache-2.0
#include "history.hpp"

#include <iterator>
#include <utility>

namespace tessera::cudart {

std::optional<Conflict> History::conflict(const Ranges::value_type& range, bool writes,
                                          const Clock& known) {
  const Bytes bytes{range.first, range.second.end};
  const Mark& write = range.second.write;
  if (write.by && !known.knows(write.when)) return Conflict{write, true, bytes};
  if (!writes) return std::nullopt;
  for (const Mark& read : range.second.reads)
    if (!known.knows(read.when)) return Conflict{read, false, bytes};
  return std::nullopt;
}

/// Who conflicts with a read that the new one knows conflicts with the new one, too, or is ordered
/// after both.
void History::add_read(Range& range, const Mark& mark, const Clock& known) {
  std::erase_if(range.reads, [&](const Mark& read) { return known.knows(read.when); });
  range.reads.push_back(mark);
}

bool History::same(const Range& a, const Range& b) {
  const auto equal = [](const Mark& x, const Mark& y) {
    return x.when.slot == y.when.slot && x.when.epoch == y.when.epoch && !x.by == !y.by;
  };
  return equal(a.write, b.write) &&
         std::equal(a.reads.begin(), a.reads.end(), b.reads.begin(), b.reads.end(), equal);
}

/// Sees to it that no range reaches across `at`; returns the first one that begins there or later.
History::Ranges::iterator History::split(std::uintptr_t at) {
  const auto next = ranges_.lower_bound(at);
  if (next == ranges_.begin()) return next;
  const auto before = std::prev(next);
  if (before->second.end <= at) return next;
  const auto second = ranges_.emplace_hint(next, at, before->second);
  before->second.end = at;
  return second;
}

std::optional<Conflict> History::find_conflict(Ranges::iterator first, Bytes bytes, bool writes,
                                               const Clock& known) {
  for (auto range = first; range != ranges_.end() && range->first < bytes.end; ++range)
    if (auto found = conflict(*range, writes, known)) return found;
  return std::nullopt;
}

std::optional<Conflict> History::write(Bytes bytes, const Mark& mark, const Clock& known) {
  const auto first = split(bytes.begin);
  const auto last = split(bytes.end);
  if (auto found = find_conflict(first, bytes, true, known)) return found;
  if (first != last && first->first == bytes.begin) {
    ranges_.erase(std::next(first), last);
    first->second.end = bytes.end;
    first->second.write = mark;
    first->second.reads.clear();
  } else {
    ranges_.emplace_hint(ranges_.erase(first, last), bytes.begin, Range{bytes.end, mark, {}});
  }
  return std::nullopt;
}

std::optional<Conflict> History::read(Bytes bytes, const Mark& mark, const Clock& known) {
  auto range = split(bytes.begin);
  split(bytes.end);
  if (auto found = find_conflict(range, bytes, false, known)) return found;
  for (std::uintptr_t at = bytes.begin; at < bytes.end;) {
    if (range != ranges_.end() && range->first == at) {
      add_read(range->second, mark, known);
      at = range->second.end;
      ++range;
    } else {
      const std::uintptr_t end =
          range == ranges_.end() ? bytes.end : std::min(range->first, bytes.end);
      ranges_.emplace_hint(range, at, Range{end, {}, {mark}});
      at = end;
    }
  }
  join(ranges_.find(bytes.begin), bytes.end);
  return std::nullopt;
}

/// Makes one range of neighbours that remember the same.
void History::join(Ranges::iterator first, std::uintptr_t end) {
  for (auto next = std::next(first); next != ranges_.end() && next->first < end;
       next = std::next(first)) {
    if (first->second.end == next->first && same(first->second, next->second)) {
      first->second.end = next->second.end;
      ranges_.erase(next);
    } else {
      first = next;
    }
  }
}

void History::forget_known(const Clock& everyone) {
  for (auto next = ranges_.begin(); next != ranges_.end();) {
    Range& range = next->second;
    std::erase_if(range.reads, [&](const Mark& read) { return everyone.knows(read.when); });
    if (range.write.by && everyone.knows(range.write.when)) range.write = {};
    next = !range.write.by && range.reads.empty() ? ranges_.erase(next) : std::next(next);
  }
}

}  // namespace tessera::cudart
