// SPDX-License-Identifier: Apache-2.0
// The rows of the gradient test with schedules beside 1F1B and GPipe, which gradient_cases() has. A
// new schedule gets its rows from the table of schedules.
#include <string>
#include <string_view>

#include "mpi/train/gradient_case.hpp"
#include "tessera/schedule/traits.hpp"

namespace tessera::test {

std::vector<GradientCase> schedule_cases(int world) {
  std::vector<GradientCase> rows;
  const auto add = [&rows](GradientCase row, std::string_view schedule) {
    row.schedule = schedule;
    if (2 * row.pp > 8) row.split = "balanced_sublayer";  // more stages than layers fill
    rows.push_back(row);
    row.tied = true;
    row.recompute = "full";
    rows.push_back(row);
    row.accumulation = 2;
    row.split = "balanced_sublayer";
    row.recompute = "none";
    row.offload = true;
    rows.push_back(row);
  };
  for (int pp = 2; pp <= world; pp *= 2)
    for (int tp = 1; tp <= 2 && pp * tp <= world; tp *= 2) {
      GradientCase row;
      row.pp = pp;
      row.tp = tp;
      row.dp = world / pp / tp;
      for (const std::string_view schedule : schedule::names())
        if (schedule != "1F1B" && schedule != "GPipe") add(row, schedule);
      if (pp > 4) continue;
      row.stage_map = pp == 2 ? "1,0" : "2,0,3,1";
      add(row, "1F1B");
      add(row, "ZBH1");
      row.stage_map = pp == 2 ? "1,0,0,1" : "2,0,3,1,1,3,0,2";
      add(row, "ZBVZeroBubble");
      row.stage_map = pp == 2 ? "1,0,1,0" : "2,0,3,1,2,0,3,1";
      add(row, "InterleavedZeroBubble");
    }
  return rows;
}

std::vector<GradientCase> mixed_schedule_cases(int world) {
  std::vector<GradientCase> rows;
  for (const char* schedule :
       {"ZBH1", "Interleaved1F1B", "InterleavedZeroBubble", "ZBVZeroBubble", "DualPipeV"})
    for (const char* family : {"", "deepseek_v3", "qwen3_moe", "gpt_oss"})
      for (int inner = 1; 2 * inner <= world && inner <= 2; ++inner) {
        GradientCase row;
        row.schedule = schedule;
        row.family = family;
        row.pp = 2;
        row.split = "balanced";
        row.dp = world / 2;
        row.ep = row.family.empty() ? 1 : inner;
        row.deterministic = inner == 2;
        row.offload = inner == 1;
        rows.push_back(row);
        if (inner == 1) continue;
        row.dp /= 2;
        row.cp = 2;
        row.ep = 1;
        row.deterministic = false;
        row.offload = row.family.empty();
        rows.push_back(row);
        row.cp = 1;
        row.tp = 2;
        row.async_tensor_parallel = row.family.empty();
        row.recompute = "full";
        rows.push_back(row);
      }
  return rows;
}

}  // namespace tessera::test
