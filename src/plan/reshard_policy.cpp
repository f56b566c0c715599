// SPDX-License-Identifier: Apache-2.0
#include "tessera/plan/reshard_policy.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/base/name_pattern.hpp"

namespace tessera::plan {
namespace {

using Kind = ReshardPolicy::Kind;

constexpr std::array<std::pair<std::string_view, Kind>, 5> kNames{{{"default", Kind::standard},
                                                                   {"always", Kind::always},
                                                                   {"never", Kind::never},
                                                                   {"last_layer", Kind::last_layer},
                                                                   {"auto", Kind::automatic}}};

UnitReshard in_groups(int group, int ranks) {
  require(ranks % group == 0, ExitCode::usage,
          "parallelism.fsdp_reshard_after_forward {}: the weights are sharded over {} ranks, which "
          "groups of {} do not "
          "divide; choose a "
          "divisor of {}",
          group, ranks, group, ranks);
  if (group == 1) return {false, 0};
  return {true, group == ranks ? 0 : group};
}

}  // namespace

std::optional<ReshardPolicy> ReshardPolicy::parse(std::string_view text) {
  for (const auto& [name, kind] : kNames)
    if (name == text) return ReshardPolicy{kind, 0};
  int group = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), group);
  if (error != std::errc{} || end != text.data() + text.size() || group < 1) return {};
  return ReshardPolicy{Kind::group, group};
}

bool ReshardPolicy::frees(bool pipelined) const {
  switch (kind) {
    case Kind::standard:
      return !pipelined;
    case Kind::never:
      return false;
    case Kind::group:
      return group > 1;
    default:
      return true;
  }
}

std::vector<UnitReshard> resolve_reshard(const ReshardPolicy& policy,
                                         const std::vector<ReshardRule>& rules,
                                         const std::vector<UnitWeights>& units, bool pipelined,
                                         int ranks, std::int64_t budget_bytes) {
  std::vector<UnitReshard> result(units.size());
  for (std::size_t i = units.size(); i-- > 0;) {
    const UnitWeights& unit = units[i];
    const auto rule = std::ranges::find_if(
        rules, [&](const ReshardRule& r) { return matches(r.match, unit.name); });
    const ReshardPolicy chosen = rule == rules.end() ? policy : rule->policy;
    switch (chosen.kind) {
      case Kind::always:
        result[i].free = true;
        break;
      case Kind::never:
        break;
      case Kind::standard:
        result[i].free = !pipelined && !unit.last;
        break;
      case Kind::last_layer:
        result[i].free = !unit.last;
        break;
      case Kind::group:
        result[i] = in_groups(chosen.group, ranks);
        break;
      case Kind::automatic:
        result[i].free = unit.gathered_bytes > budget_bytes;
        if (!result[i].free) budget_bytes -= unit.gathered_bytes;
        break;
    }
  }
  return result;
}

}  // namespace tessera::plan
