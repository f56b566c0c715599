// SPDX-License-Identifier: Apache-2.0
// What happens to gathered weights between a unit's forward and its backward.
//
// Kept weights cost memory; freed ones cost one more all_gather for each backward (and, in a
// pipeline, for each microbatch).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::plan {

struct ReshardPolicy {
  enum class Kind : std::uint8_t {
    standard,    ///< "default", TorchTitan's: freed unless pipelined; the model's last unit stays
    always,      ///< freed
    never,       ///< kept until the step is over
    last_layer,  ///< freed, but for the model's last unit, whose backward comes right after its
                 ///< forward
    automatic,   ///< "auto": as many units are kept as the free memory holds, the last ones first
    group,  ///< an integer k: each of k neighbouring ranks keeps 1/k of the weights, and gathers
            ///< again from these k
  };
  Kind kind = Kind::standard;
  int group = 0;  ///< k

  /// Of most units: does it free their weights, be it but for a part?
  bool frees(bool pipelined) const;

  /// "default", "always", "never", "last_layer", "auto" or a whole number >= 1; empty for anything
  /// else.
  static std::optional<ReshardPolicy> parse(std::string_view text);
};

/// The first rule whose pattern (ECMAScript, found anywhere in the unit's name) matches decides.
struct ReshardRule {
  std::string match;
  ReshardPolicy policy;
};

/// What one unit does after its forward.
struct UnitReshard {
  bool free = false;
  int group = 0;  ///< > 0: freed but for this rank's part among `group` neighbours
  bool operator==(const UnitReshard&) const = default;
};

/// What the resolution needs to know of a unit.
struct UnitWeights {
  std::string name;
  std::int64_t gathered_bytes = 0;  ///< on this rank
  bool last = false;                ///< of the whole model
};

/// For the units of one stage, in order. `ranks`: over which weights are sharded; `budget_bytes`:
/// what `auto` may keep, the same on all of these ranks. Throws Error(usage) when k does not divide
/// `ranks`.
std::vector<UnitReshard> resolve_reshard(const ReshardPolicy& policy,
                                         const std::vector<ReshardRule>& rules,
                                         const std::vector<UnitWeights>& units, bool pipelined,
                                         int ranks, std::int64_t budget_bytes);

}  // namespace tessera::plan
