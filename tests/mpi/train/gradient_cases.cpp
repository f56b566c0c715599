// SPDX-License-Identifier: Apache-2.0
// The rows of the gradient test, but for mixtures of experts and for the schedules beside 1F1B and
// GPipe.
#include <algorithm>
#include <iterator>
#include <string>

#include "mpi/train/gradient_case.hpp"
#include "tessera/schedule/traits.hpp"

namespace tessera::test {
namespace {

constexpr int kSequences = 16, kPositions = 16;  // of a global batch; of a sequence

void add_pipelined(std::vector<GradientCase>& rows, const GradientCase& row) {
  if (row.pp == 1) {
    rows.push_back(row);
    return;
  }
  for (const char* schedule : {"1F1B", "GPipe"}) {
    rows.push_back(row);
    rows.back().schedule = schedule;
  }
}

}  // namespace

std::vector<GradientCase> gradient_cases(int world) {
  std::vector<GradientCase> rows;
  for (int pp = 1; pp <= world; pp *= 2)
    for (int tp = 1; pp * tp <= world; tp *= 2)
      for (const char* reshard : {"default", "always", "never"})
        for (const bool tied : {false, true})
          for (const int accumulation : {1, 2}) {
            GradientCase row;
            row.pp = pp;
            row.tp = tp;
            row.dp = world / pp / tp;
            row.reshard = reshard;
            row.tied = tied;
            row.accumulation = accumulation;
            add_pipelined(rows, row);
          }
  return rows;
}

std::vector<GradientCase> sub_layer_cases(int world) {
  const std::vector<std::vector<std::string>> cuts{
      {"layers.2.attention.sdpa"},
      {"layers.0.attention.wqkv"},
      {"layers.5.feed_forward.w13"},
      {"output"},
      {"layers.1.attention.wo", "layers.2.feed_forward.w2", "layers.3.ffn_norm"},
      {"layers.1.attention.wqkv", "layers.1.attention.sdpa", "layers.1.attention.wo"},
      {"layers.0", "layers.0.attention.wo", "norm"}};
  std::vector<GradientCase> rows;
  for (int pp = 2; pp <= world; pp *= 2)
    for (int tp = 1; pp * tp <= world; tp *= 2) {
      GradientCase row;
      row.pp = pp;
      row.tp = tp;
      row.dp = world / pp / tp;
      row.tied = tp == 1;
      for (const char* split : {"balanced", "balanced_sublayer", "measured"}) {
        row.split = split;
        add_pipelined(rows, row);
      }
      for (const auto& points : cuts) {
        if (static_cast<int>(points.size()) + 1 != pp) continue;
        row.points = points;
        row.recompute = row.recompute == "none" ? "full" : "none";
        add_pipelined(rows, row);
      }
    }
  return rows;
}

std::vector<GradientCase> policy_cases(int world) {
  std::vector<GradientCase> rows;
  for (int replicate = 1; replicate <= world; replicate *= 2)
    for (int pp = 1; replicate * pp <= world && pp <= 2; pp *= 2) {
      GradientCase row;
      row.replicate = replicate;
      row.pp = pp;
      row.dp = world / replicate / pp;
      row.tied = replicate == 2;
      row.accumulation = 2;
      for (const char* adding : {"unsharded", "sharded"}) {
        row.adding = adding;
        for (const char* policy : {"last_layer", "auto", "2"}) {
          if (std::string(policy) == "2" && row.dp % 2 != 0) continue;
          row.reshard = policy;
          add_pipelined(rows, row);
        }
        row.rules = {{"layers\\.[0-3]$", "never"}, {"layers", "always"}};
        add_pipelined(rows, row);
        row.rules.clear();
      }
    }
  return rows;
}

std::vector<GradientCase> tensor_cases(int world) {
  std::vector<GradientCase> rows;
  for (int tp = 2; tp <= world; tp *= 2)
    for (int pp = 1; tp * pp <= world && pp <= 2; pp *= 2)
      for (const int kv_heads : {8, 4, 2, 1}) {
        GradientCase row;
        row.tp = tp;
        row.pp = pp;
        row.dp = world / tp / pp;
        row.kv_heads = kv_heads;
        row.tied = kv_heads == 4;
        if (pp == 2) row.split = "balanced_sublayer";
        if (kv_heads < 8) add_pipelined(rows, row);
        row.sequence_parallel = false;
        add_pipelined(rows, row);
        row.loss_parallel = false;
        add_pipelined(rows, row);
        row.sequence_parallel = true;
        add_pipelined(rows, row);
        row.async_tensor_parallel = true;
        row.recompute = kv_heads == 8 ? "op" : "none";
        add_pipelined(rows, row);
        row.deterministic = true;
        row.recompute = "full";
        add_pipelined(rows, row);
      }
  return rows;
}

std::vector<GradientCase> fused_loss_cases(int world) {
  std::vector<GradientCase> rows;
  for (int pp = 1; pp <= world && pp <= 4; pp *= 2)
    for (int tp = 1; pp * tp <= world; tp *= 2) {
      GradientCase row;
      row.fused_loss = "always";
      row.pp = pp;
      row.tp = tp;
      row.dp = world / pp / tp;
      add_pipelined(rows, row);
      row.tied = true;
      row.recompute = "full";
      add_pipelined(rows, row);
      row.sequence_parallel = false;
      row.recompute = "op";
      add_pipelined(rows, row);
      row.sequence_parallel = true;
      row.async_tensor_parallel = tp > 1;
      row.accumulation = 2;
      add_pipelined(rows, row);
      row.tied = false;
      row.deterministic = true;
      row.reshard = "always";
      add_pipelined(rows, row);
      if (pp == 1) continue;
      row.deterministic = false;
      row.schedule = "ZBH1";
      row.points = pp == 2 ? std::vector<std::string>{"output"} : std::vector<std::string>();
      rows.push_back(row);
      row.points.clear();
      row.family = "qwen3_moe";
      row.async_tensor_parallel = false;
      rows.push_back(row);
    }
  return rows;
}

std::vector<GradientCase> recompute_cases(int world) {
  std::vector<GradientCase> rows;
  for (int pp = 1; pp <= world && pp <= 4; pp *= 2)
    for (int tp = 1; pp * tp <= world && tp <= 4; tp *= 2)
      for (const char* how : {"full", "op", "memory_budget", "2"}) {
        GradientCase row;
        row.pp = pp;
        row.tp = tp;
        row.dp = world / pp / tp;
        row.recompute = how;
        row.offload = tp != 2;
        row.tied = tp == 2;
        row.reshard = tp == 4 ? "always" : "default";
        if (pp == 2) row.points = {"layers.2.attention.wqkv"};
        if (pp == 4) row.split = "balanced_sublayer";
        add_pipelined(rows, row);
        row.sequence_parallel = false;
        if (tp == 2) add_pipelined(rows, row);
      }
  return rows;
}

std::vector<GradientCase> context_cases(int world) {
  std::vector<GradientCase> rows;
  for (int cp = 1; cp <= world; cp *= 2)
    for (int pp = 1; cp * pp <= world && pp <= 2; pp *= 2)
      for (int tp = 1; cp * pp * tp <= world && tp <= 2; tp *= 2)
        for (const bool documents : {false, true})
          for (const char* rotate : {"allgather", "alltoall"})
            for (const bool balanced : {true, false}) {
              if (cp == 1 && (!documents || !balanced || std::string(rotate) == "alltoall"))
                continue;
              GradientCase row;
              row.pp = pp;
              row.cp = cp;
              row.tp = tp;
              row.dp = world / pp / cp / tp;
              row.documents = documents;
              row.rotate = rotate;
              row.balanced = balanced;
              row.kv_heads = documents ? 2 : 8;
              row.tied = balanced;
              row.accumulation = balanced ? 1 : 2;
              row.recompute = balanced == documents ? "none" : "full";
              if (pp == 2 && documents) row.points = {"layers.2.attention.sdpa"};
              add_pipelined(rows, row);
            }
  return rows;
}

std::vector<GradientCase> registered_cases(int world) {
  std::vector<GradientCase> rows;
  const auto add = [&](auto change) {
    GradientCase row;
    row.registers = true;
    row.dp = world;
    row.accumulation = 2;
    change(row);
    rows.push_back(row);
  };
  add([](GradientCase& row) {
    row.reshard = "always";
    row.adding = "sharded";
  });
  add([](GradientCase& row) {
    row.reshard = "2";
    row.dtype = "bfloat16";
  });
  add([&](GradientCase& row) {
    row.pp = 2;
    row.dp = world / 2;
    row.adding = "unsharded";
  });
  add([](GradientCase& row) {
    row.family = "qwen3_moe";
    row.ep = 2;
  });
  add([](GradientCase& row) {
    row.recipe = "tensorwise";
    row.gathers_bytes = true;
    row.dtype = "float32";
  });
  return rows;
}

std::vector<GradientCase> all_cases(int world) {
  std::vector<GradientCase> rows;
  for (const auto make :
       {gradient_cases, sub_layer_cases, schedule_cases, mixed_schedule_cases, policy_cases,
        tensor_cases, fused_loss_cases, recompute_cases, context_cases, mixture_cases})
    std::ranges::move(make(world), std::back_inserter(rows));
  // The tiny models have 8 heads, and 6 layers with an embedding and an output layer. Of 16 ranks,
  // a sequence may have more parts than positions, and a pipeline fewer sequences than stages.
  std::erase_if(rows, [](const GradientCase& row) {
    const int sequences = kSequences / (row.dp * row.replicate) / row.accumulation;
    const schedule::Traits* traits = schedule::find_traits(row.schedule);
    const int least = std::max(row.pp, traits ? traits->least_microbatches(row.pp) : 0);
    return row.tp > 8 || row.pp > 8 || (row.cp > 1 && 2 * row.cp * row.tp > kPositions) ||
           (row.pp > 1 && sequences < least);
  });
  return rows;
}

}  // namespace tessera::test
