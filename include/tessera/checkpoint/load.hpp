// SPDX-License-Identifier: Apache-2.0
// The one way in which tensors come from files into the memory of ranks.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "tessera/checkpoint/weight_source.hpp"
#include "tessera/comm/communicator.hpp"

namespace tessera::checkpoint {

/// Receives one line about something that was skipped or is not as asked for; called on rank 0
/// only.
using LogLine = std::function<void(const std::string&)>;

enum class Policy : std::uint8_t { strict, warn, ignore };

struct LoadOptions {
  Policy missing = Policy::strict;  ///< a wanted tensor that is not in the source (its memory is
                                    ///< left as it is)
  Policy extra = Policy::strict;    ///< a tensor of the source that no rank wants
  LogLine log{};                    ///< gets the table of what differs under Policy::warn
  /// A tensor of another shape, or of a type that does not convert (its memory is left as it is).
  Policy differing = Policy::strict;
  /// Names that are neither loaded nor missed; their memory is left as it is.
  std::function<bool(std::string_view)> leave_out{};
  /// Called on every rank with what is about to be loaded; an Error refuses it.
  std::function<void(const WeightSource&)> accept{};

  bool leaves_out(std::string_view name) const { return leave_out && leave_out(name); }
};

/// Collective: fills those of `wanted` that the options let in and that the source has. Throws one
/// Error(source.misfit_kind()) with a table on all ranks when the source does not hold what the
/// ranks want, before any memory changes. All ranks throw the same Error when any of them cannot
/// read; then the contents of all wanted memory are unspecified.
void load(comm::Communicator& control, const WeightSource& source,
          std::span<const SliceView> wanted, const LoadOptions& options = {});

}  // namespace tessera::checkpoint
