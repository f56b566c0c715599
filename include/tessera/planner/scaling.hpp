// SPDX-License-Identifier: Apache-2.0
// A job on other numbers of GPUs, and its GPUs without its mesh.
#pragma once

#include <optional>
#include <vector>

#include "tessera/planner/price.hpp"

namespace tessera::planner {

struct ScalingPoint {
  int gpus = 0;
  Price price;
};

struct Scaling {
  std::vector<ScalingPoint> larger_batch;  ///< as many sequences a step on each GPU
  std::vector<ScalingPoint> same_batch;    ///< as many sequences a step
};

/// The job, which is planned for `gpus`, with its mesh but more or fewer data-parallel ranks: on
/// half, a quarter, twice ... as many GPUs, at most 64 times, where its rules allow it.
Scaling scaling(const config::Resolved& job, int gpus, const Machine& machine, const Stack& stack);

/// The first of its points with a larger batch that has fewer GPUs and fits them; nothing where
/// there is none.
std::optional<ScalingPoint> on_fewest_gpus(const config::Resolved& job, int gpus,
                                           const Machine& machine, const Stack& stack);

/// The job's model and batch with FSDP alone over all GPUs, weights freed after each use, as ZeRO-3
/// (Rajbhandari et al., 2020). Nothing where the batch has too few sequences.
std::optional<Price> plain_fsdp(const config::Resolved& job, int gpus, const Machine& machine,
                                const Stack& stack);

}  // namespace tessera::planner
