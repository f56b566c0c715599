// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <string>

#include "mpi/train/gradient_case.hpp"

namespace tessera::test {
namespace {

/// Experts of tiny_family(); 1 if it has none.
int experts_of(const std::string& family) {
  return family == "qwen3" ? 1 : family == "mixtral" ? 4 : 8;
}

void add_with_schedules(std::vector<GradientCase>& rows, const GradientCase& row,
                        std::initializer_list<const char*> schedules) {
  for (const char* schedule : schedules) {
    rows.push_back(row);
    if (row.pp > 1) rows.back().schedule = schedule;
    if (row.pp == 1) return;
  }
}

/// One family on pp x tp x ep and what is left: replicas where they fit, context parallelism,
/// experts cut over tp.
void add_meshes(std::vector<GradientCase>& rows, const std::string& family, int world, int pp,
                int tp, int ep) {
  GradientCase row;
  row.family = family;
  row.pp = pp;
  row.tp = tp;
  row.dp = world / pp / tp;
  row.ep = ep;
  if (pp == 1 && row.dp > 1 && ep <= row.dp / 2 * tp) {
    row.replicate = 2;
    row.dp /= 2;
  }
  row.accumulation = ep == 2 ? 2 : 1;
  row.recompute = (pp + tp + ep) % 2 ? "full" : "none";
  if (pp > 1 && tp == 2) row.split = "balanced_sublayer";
  add_with_schedules(rows, row, {"1F1B", "GPipe"});
  if (row.dp % 2 == 0 && tp < 4) {
    rows.push_back(row);
    rows.back().dp /= 2;
    rows.back().cp = 2;
  }
  if (tp == 1) return;
  rows.push_back(row);
  rows.back().sequence_parallel = false;
  if (family == "qwen3" || row.dp % ep != 0) return;
  row.etp = tp;
  add_with_schedules(rows, row, {"1F1B", "GPipe"});
  rows.push_back(row);
  rows.back().sequence_parallel = false;
}

/// Schedules with several stages a rank or gradients apart, finer recompute, neighbours that keep a
/// part, asynchronous tensor parallelism.
void add_policies(std::vector<GradientCase>& rows, const std::string& family, int world, int tp) {
  GradientCase row;
  row.family = family;
  row.pp = 2;
  row.tp = tp;
  row.dp = world / 2 / tp;
  row.ep = std::min(world / 2, experts_of(family));
  row.async_tensor_parallel = tp == 2;
  add_with_schedules(rows, row,
                     {"Interleaved1F1B", "ZBH1", "InterleavedZeroBubble", "ZBVZeroBubble",
                      "DualPipeV", "LoopedBFS"});
  for (const char* recompute : {"op", "memory_budget"}) {
    row.recompute = recompute;
    row.reshard = row.dp % 2 == 0 ? "2" : "always";
    add_with_schedules(rows, row, {"1F1B", "ZBH1"});
  }
}

}  // namespace

std::vector<GradientCase> mixture_cases(int world) {
  std::vector<GradientCase> rows;
  for (const std::string family : {"deepseek_v3", "qwen3_moe", "gpt_oss", "mixtral", "qwen3"}) {
    for (int pp = 1; pp <= std::min(world, 4); pp *= 2)
      for (int tp = 1; pp * tp <= world; tp *= 2)
        for (int ep = 1; pp * ep <= world && ep <= experts_of(family); ep *= 2)
          add_meshes(rows, family, world, pp, tp, ep);
    for (int tp = 1; tp <= 2 && 2 * tp <= world; tp *= 2) add_policies(rows, family, world, tp);
  }
  return rows;
}

GradientCase mixture_case(int world, const std::string& family) {
  GradientCase row;
  row.family = family;
  row.pp = world >= 4 ? 2 : 1;
  row.tp = world >= 8 ? 2 : 1;
  row.dp = world / row.pp / row.tp;
  row.ep = row.dp * row.tp;
  row.recompute = "full";
  return row;
}

std::vector<GradientCase> capacity_cases(int world) {
  std::vector<GradientCase> rows;
  for (const GradientCase& row : all_cases(world))
    for (const double capacity : {1.0, 4.0}) {
      if (row.ep == 1) continue;
      rows.push_back(row);
      rows.back().capacity = capacity;
    }
  return rows;
}

std::vector<GradientCase> sent_once_cases(int world) {
  std::vector<GradientCase> rows;
  for (const GradientCase& row : all_cases(world)) {
    if (row.ep == 1) continue;
    rows.push_back(row);
    rows.back().sends_once = true;
    rows.back().capacity = std::array{0, 1, 0, 4}[rows.size() % 4];
  }
  return rows;
}

std::vector<GradientCase> overlapped_cases(int world) {
  std::vector<GradientCase> rows;
  for (const char* family : {"deepseek_v3", "qwen3_moe", "gpt_oss", "mixtral"})
    for (int tp = 1; world >= 4 && tp <= 2; ++tp)
      for (const char* recompute : {"none", "full", "op", "memory_budget"})
        for (const bool once : {false, true}) {
          GradientCase row;
          row.family = family;
          row.schedule = "DualPipeV";
          row.pp = 2;
          row.tp = tp;
          row.dp = world / 2 / tp;
          row.ep = std::min(world / 2, experts_of(family));
          row.recompute = recompute;
          row.sends_once = once;
          row.capacity = std::array{0, 4, 1}[rows.size() % 3];
          row.offload = rows.size() % 4 < 2;
          row.async_tensor_parallel = tp == 2 && once;
          row.reshard = rows.size() % 2 ? "always" : "default";
          row.accumulation = rows.size() % 3 == 0 ? 2 : 1;
          row.deterministic = rows.size() % 5 == 0;
          rows.push_back(row);
        }
  return rows;
}

}  // namespace tessera::test
