// SPDX-License-Identifier: Apache-2.0
// Copies into shared memory that a thread has begun and not waited for.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tessera::sim {

class AsyncCopies {
 public:
  struct Copy {
    void* to;
    std::uint64_t words[2];

    /// Inline, so that the stores are the kernel's and are checked.
    void land() const {
      auto* const shared = static_cast<std::uint64_t*>(to);
      shared[0] = words[0];
      shared[1] = words[1];
    }
  };

  void begin(const Copy& copy) { copies_.push_back(copy); }
  /// Is a copy on its way to this place?
  bool is_coming(const void* to) const {
    return std::any_of(copies_.begin(), copies_.end(),
                       [to](const Copy& copy) { return copy.to == to; });
  }
  void end_group() {
    newest_ = ended_;
    ended_ = copies_.size();
  }
  /// Those of all groups but the newest.
  std::vector<Copy> take_arrived() {
    const auto end = copies_.begin() + static_cast<std::ptrdiff_t>(newest_);
    std::vector<Copy> arrived(copies_.begin(), end);
    copies_.erase(copies_.begin(), end);
    ended_ -= newest_;
    newest_ = 0;
    return arrived;
  }

 private:
  std::vector<Copy> copies_;
  std::size_t newest_ = 0, ended_ = 0;  ///< where the newest group begins and ends
};

}  // namespace tessera::sim
