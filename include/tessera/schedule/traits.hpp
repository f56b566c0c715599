// The pipeline schedules that Tessera has.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "tessera/schedule/stage_map.hpp"

namespace tessera::schedule {

/// GPipe: https://arxiv.org/abs/1811.06965. 1F1B: PipeDream-Flush, https://arxiv.org/abs/2006.09503. Interleaved 1F1B:
/// https://arxiv.org/abs/2104.04473. Looped BFS: https://arxiv.org/abs/2211.05953. ZB-H1:
/// https://arxiv.org/abs/2401.10241; InterleavedZeroBubble is the same idea over interleaved 1F1B. ZB-V:
/// https://arxiv.org/abs/2405.15362. DualPipeV: half of DeepSeek-V3's DualPipe, https://arxiv.org/abs/2412.19437, cut
/// in half as in https://hackmd.io/@ufotalent/r1lVXsa9Jg.
enum class Kind : std::uint8_t {
  gpipe,
  one_f_one_b,
  interleaved,
  looped_bfs,
  zb_h1,
  interleaved_zero_bubble,
  zbv,
  dual_pipe_v,
};
inline constexpr int kSchedules = 8;

/// PyTorch's spelling: "1F1B", "Interleaved1F1B" ...; and ours, ZBH1.
std::string_view name_of(Kind schedule);
/// By that spelling; nothing for any other.
std::optional<Kind> kind_named(std::string_view name);

/// Stages of each rank: one, exactly two (the v-shaped ones), or two and more.
enum class StagesPerRank : std::uint8_t { one, two, several };
StagesPerRank stages_per_rank(Kind schedule);
/// The map that the schedule was made for: v for the v-shaped ones, else loop.
StageMap usual_map(Kind schedule, int ranks, int stages_a_rank);

}  // namespace tessera::schedule
