// SPDX-License-Identifier: Apache-2.0
#include "tessera/schedule/traits.hpp"

#include <algorithm>
#include <array>

namespace tessera::schedule {
namespace {

// ZBH1 is in the paper of zero bubbles; InterleavedZeroBubble is the same idea over interleaved
// 1F1B. DualPipeV is half of DeepSeek-V3's DualPipe, cut as in
// https://hackmd.io/@ufotalent/r1lVXsa9Jg.
// clang-format off
constexpr auto kTable = [] {
  using enum Kind;
  using enum StagesPerRank;
  using enum MapShape;
  return std::array{
    // kind                 name                   stages      map   per rank rounds  keeps  splits  pairs
    Traits{one_f_one_b,     "1F1B",                one,        loop,    1,    false, false, false,  false,
           "https://arxiv.org/abs/2006.09503"},
    Traits{eager_one_f_one_b,
                           "Eager1F1B",           one,        loop,    1,    false, false, false,  false,
           "https://arxiv.org/abs/2211.05322"},
    Traits{gpipe,           "GPipe",               one,        loop,    1,    false, true,  false,  false,
           "https://arxiv.org/abs/1811.06965"},
    Traits{interleaved,     "Interleaved1F1B",     several,    loop,    0,    true,  false, false,  false,
           "https://arxiv.org/abs/2104.04473"},
    Traits{looped_bfs,      "LoopedBFS",           several,    loop,    0,    false, true,  false,  false,
           "https://arxiv.org/abs/2211.05953"},
    Traits{zb_h1,           "ZBH1",                one,        loop,    1,    false, false, true,   false,
           "https://arxiv.org/abs/2401.10241"},
    Traits{interleaved_zero_bubble,
                            "InterleavedZeroBubble", several,  loop,    0,    true,  false, true,   false,
           "https://arxiv.org/abs/2401.10241"},
    Traits{zbv,             "ZBVZeroBubble",       two,        v,       1,    false, false, true,   false,
           "https://arxiv.org/abs/2405.15362"},
    Traits{dual_pipe_v,     "DualPipeV",           two,        v,       2,    false, false, true,   true,
           "https://arxiv.org/abs/2412.19437"}};
}();
// clang-format on

/// traits_of() takes the kind as an index.
constexpr bool in_order() {
  for (std::size_t i = 0; i < kTable.size(); ++i)
    if (kTable[i].kind != static_cast<Kind>(i)) return false;
  return true;
}
static_assert(in_order());

}  // namespace

bool fits(StagesPerRank each, std::int64_t stages, std::int64_t ranks) {
  if (each == StagesPerRank::several) return stages % ranks == 0 && stages >= 2 * ranks;
  return stages == (each == StagesPerRank::one ? ranks : 2 * ranks);
}

StageMap Traits::usual_map(int ranks, int stages_per_rank) const {
  return map == MapShape::v ? StageMap::v(ranks, stages_per_rank)
                            : StageMap::loop(ranks, stages_per_rank);
}

bool Traits::fills_rounds(std::int64_t microbatches, std::int64_t ranks) const {
  return !equal_rounds || microbatches % std::max<std::int64_t>(1, microbatches / ranks) == 0;
}

std::span<const Traits> all_traits() { return kTable; }

const Traits& traits_of(Kind kind) { return kTable[static_cast<std::size_t>(kind)]; }

const Traits* find_traits(std::string_view name) {
  const auto found = std::ranges::find(kTable, name, &Traits::name);
  return found == kTable.end() ? nullptr : &*found;
}

std::vector<std::string_view> names() {
  std::vector<std::string_view> names;
  for (const Traits& traits : kTable) names.push_back(traits.name);
  return names;
}

}  // namespace tessera::schedule
