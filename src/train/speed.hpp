// SPDX-License-Identifier: Apache-2.0
// What a token of a job costs, and how fast a rank could be.
#pragma once

#include "tessera/metrics/flops.hpp"
#include "tessera/model_spec/model_spec.hpp"
#include "tessera/parallel/stage_options.hpp"
#include "tessera/plan/run_plan.hpp"

namespace tessera::train {

/// Of a token in a sequence of `seq` tokens.
metrics::FlopsPerToken flops_of(const model::ModelSpec& model, std::int64_t seq);

/// Of this rank's GPU, or of its share of a host with `ranks_on_node` ranks, in the type that
/// computes; metrics.peak_flops comes first.
metrics::Peak peak_of(const plan::MetricsPlan& plan, const parallel::StageOptions& options,
                      int ranks_on_node);
/// The same of a device and a type alone.
metrics::Peak peak_of(at::Device device, DType dtype, int ranks_on_node);

}  // namespace tessera::train
