// Which units each pipeline stage holds.
#pragma once

#include <vector>

#include "tessera/base/shard.hpp"
#include "tessera/model/model.hpp"

namespace tessera::parallel {

/// TorchTitan's rule: the embedding counts as `first_less` blocks and the output as `last_less`; the rest is spread evenly, earlier
/// stages taking one more: 32 layers on 4 stages give 8, 9, 8, 7. A stage may hold no block.
/// Throws Error(usage) when there are more stages than that can fill.
std::vector<Range> split_by_layers(const model::Model& model, int stages, std::int64_t first_less, std::int64_t last_less);

}  // namespace tessera::parallel
