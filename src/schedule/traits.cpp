#include "tessera/schedule/traits.hpp"

#include <algorithm>
#include <array>

namespace tessera::schedule {
namespace {

constexpr std::array<std::string_view, kSchedules> kNames{
    "GPipe", "1F1B", "Interleaved1F1B", "LoopedBFS", "ZBH1", "InterleavedZeroBubble", "ZBVZeroBubble", "DualPipeV"};

}  // namespace

std::string_view name_of(Kind schedule) { return kNames[static_cast<std::size_t>(schedule)]; }

std::optional<Kind> kind_named(std::string_view name) {
  const auto found = std::ranges::find(kNames, name);
  if (found == kNames.end()) return {};
  return static_cast<Kind>(found - kNames.begin());
}

StagesPerRank stages_per_rank(Kind schedule) {
  switch (schedule) {
    case Kind::gpipe:
    case Kind::one_f_one_b:
    case Kind::zb_h1:
      return StagesPerRank::one;
    case Kind::zbv:
    case Kind::dual_pipe_v:
      return StagesPerRank::two;
    default:
      return StagesPerRank::several;
  }
}

StageMap usual_map(Kind schedule, int ranks, int stages_a_rank) {
  const bool folded = schedule::stages_per_rank(schedule) == StagesPerRank::two;
  return folded ? StageMap::v(ranks, stages_a_rank) : StageMap::loop(ranks, stages_a_rank);
}

}  // namespace tessera::schedule
