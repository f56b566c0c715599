// SPDX-License-Identifier: Apache-2.0
// tessera plan --rehearse and tessera train --rehearse: the memory of a job's ranks, and its start,
// without MPI and without a GPU.
#include "rehearsal.hpp"

#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "command.hpp"
#include "plan_data.hpp"
#include "plan_traffic.hpp"
#include "tensor_commands.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/log.hpp"
#include "tessera/kernels/host_kernels.hpp"
#include "tessera/kernels/shapes.hpp"
#include "tessera/metrics/human.hpp"
#include "tessera/metrics/memory.hpp"
#include "tessera/train/rehearsal.hpp"
#include "tessera/train/setup.hpp"

namespace tessera::app {
namespace {

using parallel::MemoryKinds;

struct Request {
  int ranks = 0;  ///< 0: as few as the mesh needs
  bool json = false;
  Args job;
};

Request request_of(const Args& args) {
  const std::string ranks = "--gpus=";
  Request request;
  for (const std::string& word : args) {
    if (word == "--json")
      request.json = true;
    else if (word.starts_with(ranks))
      request.ranks = count_in("--gpus", word.substr(ranks.size()));
    else
      request.job.push_back(word);
  }
  return request;
}

/// As `train` makes it. Data that the job names tell the size of its vocabulary.
plan::JobPlan plan_of(const Args& words, int ranks, const FindOnRanks& find) {
  config::Reading job = config::read_job(words);
  const std::int64_t vocabulary = find(job, ranks);
  for (const std::string& choice : job.resolved.choices) log::info("{}", choice);
  for (const std::string& warning : job.resolved.warnings) log::warning("{}", warning);
  config::throw_if_wrong(job.problems);
  return plan::plan_job(job.resolved, ranks, vocabulary);
}

struct RankMemory {
  mesh::Rank rank;
  train::RehearsedMemory memory;
};

struct Rehearsed {
  std::vector<RankMemory> ranks;               ///< one of each pipeline stage
  std::optional<std::int64_t> resident_bytes;  ///< of a process; on hosts
};

/// Steps of a GPU are rehearsed with shapes alone: its memory is not here.
at::Device device_of(const plan::JobPlan& plan) {
  return plan.device.choice == plan::DeviceChoice::cuda ? kernels::shape_device() : at::kCPU;
}

Rehearsed rehearse(const plan::JobPlan& plan) {
  kernels::choose_host_kernels(plan.device.kernels);
  train::keep_freed_memory();
  const at::Device device = device_of(plan);
  Rehearsed all;
  for (const mesh::Rank rank : pipeline_ranks(plan.layout)) {
    all.ranks.push_back({rank, train::rehearse_memory(plan, rank, device)});
    malloc_trim(0);  // what one rank leaves must not count for the next
  }
  if (!kernels::shapes_alone(device))
    all.resident_bytes = metrics::process_memory().peak_resident_bytes;
  return all;
}

nlohmann::json as_json(const Rehearsed& all) {
  nlohmann::json ranks = nlohmann::json::array();
  for (const auto& [rank, memory] : all.ranks) {
    const MemoryKinds& kinds = memory.kinds;
    ranks.push_back({{"rank", rank.value()},
                     {"memory_bytes", memory.peak_bytes},
                     {"terms_bytes",
                      {{"weights", kinds.weights},
                       {"gradients", kinds.gradients},
                       {"moments", kinds.moments},
                       {"gathered", kinds.gathered},
                       {"communication", kinds.communication},
                       {"activations", kinds.activations}}}});
  }
  nlohmann::json out{{"ranks", std::move(ranks)}};
  if (all.resident_bytes) out["resident_bytes"] = *all.resident_bytes;
  return out;
}

void print(const Rehearsed& all) {
  std::string label = "memory";
  for (const auto& [rank, memory] : all.ranks) {
    std::cout << fmt::format("{:<12}rank {}: {}: {}\n", label, rank,
                             metrics::human_bytes(memory.peak_bytes), memory.kinds.text());
    label.clear();
  }
  if (all.resident_bytes)
    std::cout << fmt::format("resident    {}, of a process with the largest rank\n",
                             metrics::human_bytes(*all.resident_bytes));
  else
    std::cout << "            of tensors on a GPU; its context and NCCL's buffers come on top\n";
}

void print_not_predicted(const std::string& reason) {
  std::cout << fmt::format("memory      not predicted: {}\n", reason);
}

int run(const Args& args) {
  const Request request = request_of(args);
  const plan::JobPlan plan = plan_of(request.job, request.ranks, &find_problems_but_data);
  const std::string against = train::why_not_rehearsed(plan, device_of(plan));
  if (!against.empty()) {
    if (request.json)
      std::cout << nlohmann::json{{"ranks", "not predicted: " + against}}.dump(2) << '\n';
    else
      print_not_predicted(against);
    return 0;
  }
  const Rehearsed all = rehearse(plan);
  if (request.json)
    std::cout << as_json(all).dump(2) << '\n';
  else
    print(all);
  return 0;
}

const CommandRegistration registration{kRehearse.name, kRehearse.summary, &run};

}  // namespace

int rehearse_training(int ranks, const Args& job, const FindOnRanks& find) {
  const plan::JobPlan plan = plan_of(job, ranks, find);
  const plan::BatchPlan& batch = plan.batch();
  std::cout << fmt::format(
      "job         {}: {} parameters, {} on {} ranks\n"
      "step        {} x {} tokens; of each data-parallel rank {} x {} sequences\n",
      plan.model.spec->name, metrics::human_count(plan.model.spec->parameter_count()),
      plan.layout.to_string(), ranks, batch.global_batch, plan.data.seq_len,
      batch.microbatches_a_step(), batch.microbatch_rows);
  std::cout << traffic_table(plan) << std::flush;
  const std::string against = train::why_not_rehearsed(plan, device_of(plan));
  if (!against.empty()) {
    print_not_predicted(against);
    return 0;
  }
  print(rehearse(plan));
  return 0;
}

}  // namespace tessera::app
