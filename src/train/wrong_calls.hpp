// SPDX-License-Identifier: Apache-2.0
// Collective calls that go wrong on purpose: one that is skipped, one of another size, two in the
// wrong order.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tessera/comm/communicator.hpp"

namespace tessera::train {

/// What the next calls of this rank are to suffer, seen by every communicator that was put around()
/// one.
class WrongCalls {
 public:
  /// `exhaust_memory`: throws what an allocation of too much does.
  explicit WrongCalls(std::function<void()> exhaust_memory)
      : exhaust_memory_(std::move(exhaust_memory)) {}
  ~WrongCalls() { tell_missed(); }
  WrongCalls(const WrongCalls&) = delete;
  WrongCalls& operator=(const WrongCalls&) = delete;

  enum class Kind : std::uint8_t {
    freeze,  ///< the process stops instead
    die,     ///< the process is gone instead
    memory,  ///< comes after an allocation of more memory than there is
    skip,    ///< is skipped, as if it were done
    shape,   ///< with one element too few
    order    ///< a barrier on another communicator, if there is one, comes before it
  };

  /// The `nth` call from now on, counted from 1 over all communicators; a group of transfers counts
  /// as one.
  /// `what` names it in a message, should it not happen.
  void arm(Kind kind, std::int64_t nth, std::string what) {
    tell_missed();
    armed_ = {kind, nth, std::move(what)};
  }
  /// The communicator with its calls counted. This object must outlive it.
  std::unique_ptr<comm::Communicator> around(std::unique_ptr<comm::Communicator> inner);

 private:
  class Counted;
  struct Armed {
    Kind kind;
    std::int64_t left;
    std::string what;
  };
  void tell_missed() const;
  /// Counts a call of `caller`; what is to happen to it.
  std::optional<Kind> fate(const Counted& caller);

  std::function<void()> exhaust_memory_;
  std::optional<Armed> armed_;
  std::vector<Counted*> all_;
};

}  // namespace tessera::train
