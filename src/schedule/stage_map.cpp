// SPDX-License-Identifier: Apache-2.0
#include "tessera/schedule/stage_map.hpp"

#include <algorithm>
#include <charconv>

#include "tessera/base/error.hpp"

namespace tessera::schedule {
namespace {

/// "0,1,1,0" -> {0, 1, 1, 0}; empty where the text is anything else.
std::vector<int> numbers(const std::string& text) {
  std::vector<int> result;
  const char *next = text.data(), *end = next + text.size();
  while (next < end) {
    int number = 0;
    const auto [stop, problem] = std::from_chars(next, end, number);
    if (problem != std::errc() || (stop != end && *stop != ',')) return {};
    result.push_back(number);
    next = stop == end ? end : stop + 1;
  }
  return result;
}

}  // namespace

StageMap StageMap::of(const std::vector<int>& ranks) {
  const auto stages = static_cast<int>(ranks.size());
  StageMap map;
  for (const int rank : ranks) {
    const StageIndex stage(map.stages());
    require(rank >= 0 && rank < stages, ExitCode::usage,
            "pipeline stage {} is on rank {}; {} stages fill ranks 0 to {} at most", stage, rank,
            stages, stages - 1);
    if (rank >= map.ranks()) map.stages_.resize(rank + 1);
    map.ranks_.push_back(PipelineRank(rank));
    map.stages_[PipelineRank(rank)].push_back(stage);
  }
  for (const PipelineRank rank : map.each_rank())
    require(!map.stages_of(rank).empty(), ExitCode::usage,
            "pipeline rank {} has no stage; give it one", rank);
  return map;
}

StageMap StageMap::loop(int ranks, int stages_per_rank) {
  std::vector<int> list;
  for (int stage = 0; stage < ranks * stages_per_rank; ++stage) list.push_back(stage % ranks);
  return of(list);
}

StageMap StageMap::v(int ranks, int stages_per_rank) {
  std::vector<int> list;
  for (int turn = 0; turn < stages_per_rank; ++turn)
    for (int i = 0; i < ranks; ++i) list.push_back(turn % 2 == 0 ? i : ranks - 1 - i);
  return of(list);
}

StageMap StageMap::parse(const std::string& text, int stages, int ranks, const char* key) {
  if (text == "loop" || text == "v") {
    require(stages % ranks == 0, ExitCode::usage,
            "{} = \"{}\" gives every rank the same number of stages; {} stages "
            "on {} ranks are not a multiple; choose one, or a list of ranks",
            key, text, stages, ranks);
    return text == "loop" ? loop(ranks, stages / ranks) : v(ranks, stages / ranks);
  }
  const std::vector<int> list = numbers(text);
  require(!list.empty(), ExitCode::usage,
          "{} = \"{}\" is not a map of stages; write loop, v, or the rank of each stage, "
          "as in \"0,1,1,0\"",
          key, text);
  const auto valid = [ranks](int rank) { return rank >= 0 && rank < ranks; };
  require(std::ranges::all_of(list, valid) && static_cast<int>(list.size()) == stages,
          ExitCode::usage,
          "{} = \"{}\" names {} ranks; {} stages on ranks 0 to {} need one of these for each stage",
          key, text, list.size(), stages, ranks - 1);
  StageMap map = of(list);
  require(map.ranks() == ranks, ExitCode::usage,
          "{} = \"{}\" leaves rank {} without a stage; give it one", key, text, ranks - 1);
  return map;
}

}  // namespace tessera::schedule
