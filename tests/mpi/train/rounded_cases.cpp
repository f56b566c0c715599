// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

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

/// add(row) for each pp of up to 2 x tp of up to `most_tp`, the other ranks on dp.
template <class Add>
void for_meshes(int world, int most_tp, const std::string& recipe, const Add& add) {
  for (int pp = 1; pp <= world && pp <= 2; pp *= 2)
    for (int tp = 1; pp * tp <= world && tp <= most_tp; tp *= 2) {
      GradientCase row;
      row.recipe = recipe;
      row.pp = pp;
      row.tp = tp;
      row.dp = world / pp / tp;
      add(row);
    }
}

constexpr const char* kRecipes[] = {"tensorwise", "rowwise", "rowwise_with_gw_hp", "mxfp8_cublas"};

}  // namespace

std::vector<GradientCase> rounded_cases(int world) {
  std::vector<GradientCase> rows;
  for (const char* recipe : kRecipes)
    for_meshes(world, 4, recipe, [&](GradientCase row) {
      if (row.in_blocks() && row.pp * row.dp > 8) return;  // too few tokens
      add_ways(rows, row);
      if (row.pp * row.tp > 2 || (row.in_blocks() && row.tp * row.dp > 8)) return;
      row.family = "deepseek_v3";
      row.ep = row.dp;
      row.recompute = row.tp == 1 ? "op" : "none";
      rows.push_back(row);
    });
  return rows;
}

std::vector<GradientCase> blockwise_cases(int world) {
  std::vector<GradientCase> rows;
  for_meshes(world, 2, "blockwise", [&](GradientCase row) {
    add_ways(rows, row);
    // A router needs 128 tokens on each rank.
    if (row.pp > 1 || (row.tp > 1 && row.dp > 1)) return;
    row.family = "deepseek_v3";
    row.sequence_parallel = false;  // the others take any number
    rows.push_back(row);
  });
  return rows;
}

std::vector<GradientCase> gathered_bytes_cases(int world) {
  std::vector<GradientCase> rows;
  for_meshes(world, 4, "tensorwise", [&](GradientCase row) {
    row.gathers_bytes = true;
    add_ways(rows, row);
    for (const char* reshard : {"always", "never", "2"}) {
      if (reshard[0] == '2' && row.dp < 4) continue;
      rows.push_back(row);
      rows.back().reshard = reshard;
      rows.back().recompute = "op";
    }
    if (row.dp > 1) {
      rows.push_back(row);
      rows.back().replicate = 2;
      rows.back().dp /= 2;
    }
    if (row.pp * row.tp > 2) return;
    row.family = "deepseek_v3";
    row.ep = row.dp;
    rows.push_back(row);
  });
  return rows;
}

std::vector<GradientCase> rounded_experts_cases(int world) {
  std::vector<GradientCase> rows;
  for (const char* recipe : {"float8", "mx"}) {
    GradientCase row;
    row.family = "deepseek_v3";
    row.experts = recipe;
    row.dp = world;
    rows.push_back(row);
    row.ep = row.dp;
    row.recompute = "op";
    rows.push_back(row);
    if (world < 2) continue;
    row.dp = world / 2;
    row.ep = 1;  // microbatches of several ranks are no microbatch of one
    row.pp = 2;
    row.schedule = "ZBH1";
    rows.push_back(row);
    row.pp = 1;
    row.ep = row.dp;
    row.tp = row.etp = 2;
    row.recompute = "full";
    rows.push_back(row);
  }
  return rows;
}

std::vector<GradientCase> rounded_copies_cases(int world) {
  std::vector<GradientCase> rows;
  if (world < 2) return rows;
  for (const char* recipe : kRecipes) {
    GradientCase row;
    row.recipe = recipe;
    row.tp = std::min(world, 4);
    row.kv_heads = row.tp / 2;
    row.pp = world > row.tp ? 2 : 1;
    row.dp = world / row.tp / row.pp;
    row.schedule = "ZBH1";
    row.recompute = rows.size() % 2 == 0 ? "op" : "none";
    row.sequence_parallel = rows.size() < 2;
    rows.push_back(row);
  }
  rows.push_back(rows.front());
  rows.back().gathers_bytes = true;
  return rows;
}

}  // namespace tessera::test
