// SPDX-License-Identifier: Apache-2.0
// Numbers of things as types: the index of a stage converts neither to that of a rank nor to int.
#pragma once

#include <fmt/core.h>

#include <compare>
#include <cstddef>

namespace tessera {

/// The number of one thing of a kind, from 0. `Kind` is a type that only names the kind:
/// using StageIndex = Index<struct StageKind>.
template <class Kind>
class Index {
 public:
  constexpr Index() = default;
  constexpr explicit Index(int value) : value_(value) {}

  constexpr int value() const { return value_; }
  /// Of an element in a vector or a span. The value must not be negative.
  constexpr std::size_t position() const { return static_cast<std::size_t>(value_); }

  constexpr auto operator<=>(const Index&) const = default;
  constexpr Index& operator++() {
    ++value_;
    return *this;
  }
  friend constexpr Index operator+(Index index, int steps) { return Index(index.value_ + steps); }
  friend constexpr Index operator-(Index index, int steps) { return Index(index.value_ - steps); }

 private:
  int value_ = 0;
};

/// Indexes 0 to count - 1, for loops: for (const StageIndex stage : IndexRange<StageIndex>(4)).
template <class I>
class IndexRange {
 public:
  class Iterator {
   public:
    constexpr explicit Iterator(I at) : at_(at) {}
    constexpr I operator*() const { return at_; }
    constexpr Iterator& operator++() {
      ++at_;
      return *this;
    }
    constexpr bool operator==(const Iterator&) const = default;

   private:
    I at_;
  };

  constexpr explicit IndexRange(int count) : count_(count) {}
  constexpr Iterator begin() const { return Iterator(I(0)); }
  constexpr Iterator end() const { return Iterator(I(count_)); }

 private:
  int count_;
};

}  // namespace tessera

/// "{}" prints the number.
template <class Kind>
struct fmt::formatter<tessera::Index<Kind>> {
  constexpr auto parse(fmt::format_parse_context& context) { return context.begin(); }
  auto format(tessera::Index<Kind> index, fmt::format_context& context) const {
    return fmt::format_to(context.out(), "{}", index.value());
  }
};
