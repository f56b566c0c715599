// SPDX-License-Identifier: Apache-2.0
// Vector clocks: what is known to lie in the past (Mattern 1989). A stream has a slot; its tasks
// count epochs from 1.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tessera::cudart {

/// One task, by its stream's slot and its number on that stream.
struct Moment {
  std::uint32_t slot = 0;
  std::uint64_t epoch = 0;
};

/// For each slot the last epoch that is known to lie in the past; 0 where none is.
class Clock {
 public:
  std::uint64_t at(std::uint32_t slot) const { return slot < epochs_.size() ? epochs_[slot] : 0; }
  bool knows(Moment moment) const { return at(moment.slot) >= moment.epoch; }
  bool is_empty() const { return epochs_.empty(); }
  /// Whether all that `other` knows is known here.
  bool covers(const Clock& other) const {
    for (std::size_t slot = 0; slot < other.epochs_.size(); ++slot)
      if (at(static_cast<std::uint32_t>(slot)) < other.epochs_[slot]) return false;
    return true;
  }

  /// Counts on in `slot` and returns its new epoch.
  std::uint64_t advance(std::uint32_t slot) {
    if (slot >= epochs_.size()) epochs_.resize(slot + std::size_t{1});
    return ++epochs_[slot];
  }

  void merge(const Clock& other) {
    if (epochs_.size() < other.epochs_.size()) epochs_.resize(other.epochs_.size());
    for (std::size_t slot = 0; slot < other.epochs_.size(); ++slot)
      epochs_[slot] = std::max(epochs_[slot], other.epochs_[slot]);
  }
  /// Keeps what `other` knows, too.
  void intersect(const Clock& other) {
    for (std::size_t slot = 0; slot < epochs_.size(); ++slot)
      epochs_[slot] = std::min(epochs_[slot], other.at(static_cast<std::uint32_t>(slot)));
  }

 private:
  std::vector<std::uint64_t> epochs_;
};

/// What a stream's next task knows. The slot comes with the first one.
struct StreamTime {
  std::string name;
  std::optional<std::uint32_t> slot;
  Clock known;
};

}  // namespace tessera::cudart
