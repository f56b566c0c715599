// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/device_agreement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "tessera/base/json.hpp"

namespace tessera::train {
namespace {

using Ranks = std::span<const RankDevice>;

std::string named(Ranks ranks, std::size_t rank) {
  return fmt::format("rank {} on {}", rank, ranks[rank].host);
}

/// The first rank for which `differs`, or the number of ranks.
template <class Test>
std::size_t first(Ranks ranks, const Test& test) {
  return static_cast<std::size_t>(std::ranges::find_if(ranks, test) - ranks.begin());
}

std::string builds(Ranks ranks, plan::DeviceChoice wanted) {
  const bool cuda = ranks[0].facts.build;
  if (const std::size_t other =
          first(ranks, [&](const RankDevice& r) { return r.facts.build != cuda; });
      other < ranks.size())
    return fmt::format(
        "{} has a build of Tessera with CUDA, and {} one without; install the same build on all "
        "nodes",
        named(ranks, cuda ? 0 : other), named(ranks, cuda ? other : 0));
  if (cuda || wanted != plan::DeviceChoice::cuda) return {};
  return "job.device = \"cuda\" needs a build of Tessera with CUDA, which this one is not; build "
         "with "
         "TESSERA_WITH_CUDA=ON and TESSERA_WITH_NCCL=ON, or set job.device = \"cpu\"";
}

/// Ranks without a GPU of their own, among others or all of them.
std::string without_gpu(Ranks ranks) {
  const auto lacks = [](const RankDevice& r) { return r.facts.name.empty(); };
  const std::size_t rank = first(ranks, lacks);
  if (rank == ranks.size()) return {};
  const comm::DeviceFacts& facts = ranks[rank].facts;
  const auto lacking = static_cast<std::size_t>(std::ranges::count_if(ranks, lacks));
  const std::string who =
      lacking == ranks.size()
          ? fmt::format("no rank has a GPU ({}: {})", named(ranks, rank), facts.trouble)
          : fmt::format("{} of {} ranks have no GPU, first {} ({})", lacking, ranks.size(),
                        named(ranks, rank), facts.trouble);
  if (facts.visible > 0)
    return fmt::format(
        "{}; start {} ranks on each node, or let ranks share GPUs with job.share_device = true",
        who, facts.visible);
  if (lacking == ranks.size())
    return who + "; look at `nvidia-smi` there, or train on the host with job.device = \"cpu\"";
  return fmt::format("{}; look at `nvidia-smi` there, or exclude that node (srun --exclude={})",
                     who, ranks[rank].host);
}

std::string different_gpus(Ranks ranks) {
  const std::size_t other =
      first(ranks, [&](const RankDevice& r) { return r.facts.name != ranks[0].facts.name; });
  if (other == ranks.size()) return {};
  return fmt::format(
      "ranks have different GPUs: {} has {}, {} has {}; ask for nodes of one kind (srun "
      "--constraint, --partition)",
      named(ranks, 0), ranks[0].facts.name, named(ranks, other), ranks[other].facts.name);
}

/// "ranks 0 and 1 on node1 have the same GPU (...)" of the first two that do.
std::string same_gpu(Ranks ranks) {
  std::map<std::pair<std::string, std::string>, std::size_t> owners;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const auto [owner, is_new] =
        owners.try_emplace({ranks[rank].host, ranks[rank].facts.uuid}, rank);
    if (!is_new)
      return fmt::format("ranks {} and {} on {} have the same GPU ({})", owner->second, rank,
                         ranks[rank].host, ranks[rank].facts.uuid);
  }
  return {};
}

std::string shared_gpus(Ranks ranks) {
  const std::string who = same_gpu(ranks);
  if (who.empty()) return {};
  return who +
         "; give each rank its own (srun --gpus-per-node with as many tasks), or let ranks share "
         "GPUs with job.share_device = true";
}

/// NCCL refuses ranks that share a GPU with "Duplicate GPU detected", unless it is told.
std::string nccl_on_shared_gpus(Ranks ranks) {
  constexpr int since = 23000;
  const std::string who = same_gpu(ranks);
  const std::size_t refused = first(ranks, [&](const RankDevice& r) {
    return !r.facts.nccl_shares_gpus || r.facts.nccl_loaded < since;
  });
  if (who.empty() || refused == ranks.size()) return {};
  return fmt::format(
      "{}, which NCCL allows from 2.30 on and with NCCL_MULTI_RANK_GPU_ENABLE=1 ({} has {} and "
      "{}); "
      "see to both, or set comm.backend = \"mpi\"",
      who, named(ranks, refused), ranks[refused].facts.nccl_loaded,
      ranks[refused].facts.nccl_shares_gpus ? "that" : "not that");
}

/// "13.0" of 13000.
std::string cuda_version(int code) { return fmt::format("{}.{}", code / 1000, code % 1000 / 10); }

std::string two_nccls(Ranks ranks) {
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const comm::DeviceFacts& facts = ranks[rank].facts;
    if (facts.nccl_libraries.size() > 1)
      return fmt::format(
          "{} has more than one NCCL in its process: {}; remove one of them from LD_LIBRARY_PATH",
          named(ranks, rank), fmt::join(facts.nccl_libraries, ", "));
    if (facts.nccl_loaded < facts.nccl_built)
      return fmt::format(
          "{} has loaded NCCL {} from {}, and this build needs {} or newer; load the module of the "
          "NCCL that Tessera "
          "was built with",
          named(ranks, rank), facts.nccl_loaded, fmt::join(facts.nccl_libraries, ", "),
          facts.nccl_built);
  }
  const std::size_t rebuilt = first(
      ranks, [&](const RankDevice& r) { return r.facts.nccl_built != ranks[0].facts.nccl_built; });
  if (rebuilt < ranks.size())
    return fmt::format(
        "{} has a build of Tessera for NCCL {}, and {} one for NCCL {}; install the same build on "
        "all "
        "nodes",
        named(ranks, 0), ranks[0].facts.nccl_built, named(ranks, rebuilt),
        ranks[rebuilt].facts.nccl_built);
  const std::size_t other = first(ranks, [&](const RankDevice& r) {
    return r.facts.nccl_loaded != ranks[0].facts.nccl_loaded;
  });
  if (other == ranks.size()) return {};
  return fmt::format("{} has NCCL {}, and {} has NCCL {}; load the same module on all nodes",
                     named(ranks, 0), ranks[0].facts.nccl_loaded, named(ranks, other),
                     ranks[other].facts.nccl_loaded);
}

}  // namespace

std::string text_of(const RankDevice& device) {
  const comm::DeviceFacts& f = device.facts;
  return json_text(nlohmann::json::array({device.host, f.build, f.visible, f.index, f.name, f.uuid,
                                          f.trouble, f.pci, f.driver, f.nccl_built, f.nccl_loaded,
                                          f.nccl_libraries, f.nccl_shares_gpus}));
}

RankDevice rank_device_of(const std::string& text) {
  RankDevice device;
  comm::DeviceFacts& f = device.facts;
  std::size_t next = 0;
  const nlohmann::json values = parse_valid_json(text);
  const auto take = [&](auto& value) { values.at(next++).get_to(value); };
  take(device.host), take(f.build), take(f.visible), take(f.index), take(f.name), take(f.uuid),
      take(f.trouble);
  take(f.pci), take(f.driver), take(f.nccl_built), take(f.nccl_loaded), take(f.nccl_libraries);
  take(f.nccl_shares_gpus);
  return device;
}

int ranks_on_gpu(Ranks ranks, const RankDevice& one) {
  return static_cast<int>(std::ranges::count_if(ranks, [&](const RankDevice& rank) {
    return rank.host == one.host && rank.facts.uuid == one.facts.uuid;
  }));
}

std::string device_warning(Ranks ranks) {
  const int driver = ranks[0].facts.driver;
  const std::size_t other =
      first(ranks, [&](const RankDevice& r) { return r.facts.driver != driver; });
  if (other == ranks.size()) return {};
  return fmt::format(
      "GPU drivers differ: {} has one for CUDA {}, {} one for CUDA {}; install the same driver on "
      "all nodes if "
      "communication fails or is slow",
      named(ranks, 0), cuda_version(driver), named(ranks, other),
      cuda_version(ranks[other].facts.driver));
}

std::string device_problem(Ranks ranks, plan::DeviceChoice wanted, bool share, bool with_nccl) {
  if (wanted == plan::DeviceChoice::cpu) return {};
  if (std::string problem = builds(ranks, wanted); !problem.empty() || !ranks[0].facts.build)
    return problem;
  for (const auto& rule : {&without_gpu, &different_gpus})
    if (std::string problem = rule(ranks); !problem.empty()) return problem;
  if (std::string problem = with_nccl ? two_nccls(ranks) : ""; !problem.empty()) return problem;
  if (!share) return shared_gpus(ranks);
  return with_nccl ? nccl_on_shared_gpus(ranks) : std::string();
}

}  // namespace tessera::train
