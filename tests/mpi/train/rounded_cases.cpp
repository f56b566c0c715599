// SPDX-License-Identifier: Apache-2.0
#include "mpi/train/gradient_case.hpp"

namespace tessera::test {
namespace {

/// One recipe on pp x tp: every way of recomputing, of spreading tokens and of leaving gradients of
/// weights for later.
void add_ways(std::vector<GradientCase>& rows, GradientCase row) {
  row.accumulation = row.pp == 1 && row.dp < 4 ? 2 : 1;
  row.tied = row.tp == 2;
  rows.push_back(row);
  row.tied = row.pp == 2;
  row.recompute = row.tp == 1 ? "op" : "full";
  row.deterministic = row.tp > 1;
  if (row.pp > 1) row.schedule = "ZBH1";
  rows.push_back(row);
  if (row.tp == 1) return;
  row.deterministic = false;
  row.recompute = "op";
  row.sequence_parallel = false;
  rows.push_back(row);
  row.loss_parallel = false;
  row.recompute = "none";
  row.async_tensor_parallel = row.sequence_parallel = true;
  rows.push_back(row);
}

}  // namespace

std::vector<GradientCase> rounded_cases(int world) {
  std::vector<GradientCase> rows;
  for (const char* recipe : {"tensorwise", "rowwise", "rowwise_with_gw_hp"})
    for (int pp = 1; pp <= world && pp <= 2; pp *= 2)
      for (int tp = 1; pp * tp <= world && tp <= 4; tp *= 2) {
        GradientCase row;
        row.recipe = recipe;
        row.pp = pp;
        row.tp = tp;
        row.dp = world / pp / tp;
        add_ways(rows, row);
        if (pp * tp > 2) continue;
        row.family = "deepseek_v3";
        row.ep = row.dp;
        row.recompute = tp == 1 ? "op" : "none";
        rows.push_back(row);
      }
  return rows;
}

}  // namespace tessera::test
