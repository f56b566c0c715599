// SPDX-License-Identifier: Apache-2.0
// For each byte the last write and the reads since, as ranges of bytes that share them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "clock.hpp"

namespace tessera::cudart {

/// Who made an access, for reports.
struct Origin {
  std::string what, stream;
};

struct Mark {
  Moment when;
  std::shared_ptr<const Origin> by;  ///< null: no access
};

/// Addresses from `begin` up to `end`.
struct Bytes {
  std::uintptr_t begin = 0, end = 0;
};

/// An earlier access that nothing orders before a new one, and the bytes that both touch.
struct Conflict {
  Mark earlier;
  bool earlier_writes = false;
  Bytes bytes;
};

class History {
 public:
  /// Remembers an access by someone who knows `known`, or returns the first conflict and remembers
  /// no more.
  std::optional<Conflict> read(Bytes bytes, const Mark& mark, const Clock& known);
  std::optional<Conflict> write(Bytes bytes, const Mark& mark, const Clock& known);

  /// Forgets all accesses to these bytes, which are no memory any more.
  void forget(Bytes bytes) { ranges_.erase(split(bytes.begin), split(bytes.end)); }
  /// Forgets all accesses that `everyone` knows: no later access can conflict with them.
  void forget_known(const Clock& everyone);
  std::size_t ranges() const { return ranges_.size(); }

 private:
  struct Range {
    std::uintptr_t end = 0;
    Mark write;
    std::vector<Mark> reads;
  };
  using Ranges = std::map<std::uintptr_t, Range>;

  static std::optional<Conflict> conflict(const Ranges::value_type& range, bool writes,
                                          const Clock& known);
  static void add_read(Range& range, const Mark& mark, const Clock& known);
  static bool same(const Range& a, const Range& b);
  Ranges::iterator split(std::uintptr_t at);
  std::optional<Conflict> find_conflict(Ranges::iterator first, Bytes bytes, bool writes,
                                        const Clock& known);
  void join(Ranges::iterator first, std::uintptr_t end);

  Ranges ranges_;
};

}  // namespace tessera::cudart
