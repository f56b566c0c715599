#include "tessera/parallel/stage_split.hpp"

#include "tessera/base/error.hpp"

namespace tessera::parallel {

std::vector<Range> split_by_layers(const model::Model& model, int stages, std::int64_t first_less, std::int64_t last_less) {
  const std::int64_t blocks = model.dimensions.layers;
  if (stages == 1) return {{0, blocks + 2}};
  const std::int64_t total = blocks + first_less + last_less;
  require(stages <= total, ExitCode::usage,
          "pipeline_parallel_degree {} is more than {} has to share: {} layers, the embedding counted as {} and the output as {}; "
          "choose at most {}", stages, model.name, blocks, first_less, last_less, total);
  std::vector<Range> ranges;
  std::int64_t next_unit = 0, blocks_left = blocks;
  for (int stage = 0; stage < stages; ++stage) {
    const bool first = stage == 0, last = stage + 1 == stages;
    std::int64_t share = total / stages + (stage < total % stages ? 1 : 0);
    share -= (first ? first_less : 0) + (last ? last_less : 0);
    share = last ? blocks_left : std::clamp<std::int64_t>(share, 0, blocks_left);
    const std::int64_t units = share + (first ? 1 : 0) + (last ? 1 : 0);
    ranges.push_back({next_unit, units});
    next_unit += units;
    blocks_left -= share;
  }
  return ranges;
}

}  // namespace tessera::parallel
